"""A destination that gets no checkpoint of the audit log for an hour is an incident: its kind and what it is about."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0001_squashed_0002_append_only"),
        ("ledger", "0005_analyze_with_the_rights_of_the_owner"),
        ("operations", "0021_paid_elsewhere"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="incident",
            name="incident_is_about_one_thing",
        ),
        migrations.RemoveConstraint(
            model_name="incident",
            name="incident_kind_known",
        ),
        migrations.AddField(
            model_name="incident",
            name="destination",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="incidents",
                to="audit.checkpointdestination",
            ),
        ),
        migrations.AlterField(
            model_name="incident",
            name="kind",
            field=models.CharField(
                choices=[
                    ("now_failed", "Closed as succeeded, but the provider reports it as failed"),
                    ("not_listed", "The provider's list does not show the transaction of this operation"),
                    ("now_executed", "Closed as failed, but the provider reports it as executed"),
                    (
                        "executed_after_all",
                        "The provider shows a debit similar to this operation, which is recorded as not executed",
                    ),
                    ("second_debit", "The provider shows a second debit similar to this operation"),
                    ("unrecognised", "The provider shows a transaction that no operation explains"),
                    ("record_mismatch", "The provider's record differs from what was approved"),
                    ("fee_mismatch", "The provider's record shows a different fee"),
                    ("outcome_mismatch", "The provider's record does not show the recorded outcome"),
                    (
                        "id_received_for_another",
                        "The provider returned this operation's transaction in its response to another operation",
                    ),
                    ("late_response", "A late response from the provider contradicts the record"),
                    (
                        "executed_despite_proof",
                        "Proven not executed, but the provider shows a similar transaction",
                    ),
                    (
                        "altered_record",
                        "The operation, an approval or the release was altered or inserted outside Countersign",
                    ),
                    (
                        "database_restored",
                        "The database was restored to an earlier point in time, or a standby server took over",
                    ),
                    (
                        "journal_lost",
                        "A machine has no journal of sent requests, although requests were sent",
                    ),
                    ("altered_pause", "A pause of payments was ended or deleted outside Countersign"),
                    (
                        "managed_codes_refused",
                        "The provider refused several one-time codes generated from the stored authenticator secret",
                    ),
                    ("checkpoint_overdue", "A destination got no audit log checkpoint for an hour"),
                ],
                max_length=32,
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("destination__isnull", True),
                        ("operation__isnull", False),
                        ("pause__isnull", True),
                        ("transaction__isnull", True),
                    ),
                    models.Q(
                        ("destination__isnull", True),
                        ("operation__isnull", True),
                        ("pause__isnull", True),
                        ("transaction__isnull", False),
                    ),
                    models.Q(
                        ("destination__isnull", True),
                        ("operation__isnull", True),
                        ("pause__isnull", False),
                        ("transaction__isnull", True),
                    ),
                    models.Q(
                        ("destination__isnull", False),
                        ("operation__isnull", True),
                        ("pause__isnull", True),
                        ("transaction__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="incident_is_about_one_thing",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("further_to__isnull", True)),
                fields=("destination",),
                name="incident_first_once_per_destination",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "now_failed",
                            "not_listed",
                            "now_executed",
                            "executed_after_all",
                            "second_debit",
                            "unrecognised",
                            "record_mismatch",
                            "fee_mismatch",
                            "outcome_mismatch",
                            "id_received_for_another",
                            "late_response",
                            "executed_despite_proof",
                            "altered_record",
                            "database_restored",
                            "journal_lost",
                            "altered_pause",
                            "managed_codes_refused",
                            "checkpoint_overdue",
                        ],
                    )
                ),
                name="incident_kind_known",
            ),
        ),
    ]
