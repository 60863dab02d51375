# The pause that begins because the last one was ended or deleted in the database; blockers of the journal; reasons without
# exception names
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0003_search_by_names"),
        ("operations", "0007_journal"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="incident",
            name="incident_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="pause",
            name="pause_by_a_person_or_a_cause",
        ),
        migrations.RemoveConstraint(
            model_name="release",
            name="release_blocked_has_time",
        ),
        migrations.AlterField(
            model_name="attempt",
            name="check_result",
            field=models.CharField(
                blank=True,
                choices=[
                    ("not_observable", "The provider's API does not show this outcome. Ask the provider."),
                    ("provider_unreadable", "The provider's data could not be read: {error}"),
                    ("list_changing", "The provider's list changed during every read"),
                    (
                        "content_unreadable",
                        "This version of Countersign cannot read the content, so the outcome was not checked.",
                    ),
                    ("done", "The provider shows this change as done"),
                    ("not_done", "The provider does not show this change as done yet"),
                    ("not_listed", "Not in the provider's list yet"),
                    ("several_candidates", "{count} transactions in the list could match"),
                    ("candidate_rejected", "{transaction} could match, but {reason}"),
                    ("found", "Matched to {transaction}: {status}"),
                    (
                        "found_too_early",
                        "Possible match {transaction}: {status}; not matched before {not_before}, because another transaction may still appear",
                    ),
                    (
                        "internal_error",
                        "Internal error in Countersign. Contact the operator: the server log has the details.",
                    ),
                ],
                max_length=32,
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
                    ("altered_pause", "A pause of payments was ended or deleted outside Countersign"),
                ],
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="pause",
            name="cause",
            field=models.CharField(
                blank=True,
                choices=[
                    (
                        "database_restored",
                        "The database was restored to an earlier point in time, or a standby server took over. Payments that were sent may be missing.",
                    ),
                    ("altered_pause", "The last pause was ended or deleted outside Countersign."),
                ],
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="release",
            name="blocker",
            field=models.CharField(
                choices=[
                    ("provider_unreadable", "The provider's data could not be read. {error}"),
                    ("list_changing", "The provider's list changed during every read."),
                    (
                        "database_slow",
                        "The database responded too slowly, so the values checked before sending were out of date.",
                    ),
                    ("journal_unwritable", "The journal of sent requests cannot be written: {error}."),
                    ("journal_unreadable", "The journal of sent requests {file} cannot be read: {error}."),
                    (
                        "journal_gone",
                        "The journal of sent requests {file} was deleted or replaced while Countersign was running. Ask the operator to bring it back, or to restart all processes to begin a new one.",
                    ),
                    (
                        "internal_error",
                        "Internal error in Countersign. Contact the operator: the server log has the details.",
                    ),
                ],
                editable=False,
                max_length=32,
                null=True,
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
                            "altered_pause",
                        ],
                    )
                ),
                name="incident_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("cause", ""), ("paused_by__isnull", False), models.Q(("reason", ""), _negated=True)
                    ),
                    models.Q(
                        ("cause__in", ["database_restored", "altered_pause"]),
                        ("paused_by__isnull", True),
                        ("reason", ""),
                    ),
                    _connector="OR",
                ),
                name="pause_by_a_person_or_a_cause",
            ),
        ),
        migrations.AddConstraint(
            model_name="release",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("blocked_since__isnull", True), ("blocker__isnull", True)),
                    models.Q(
                        ("blocked_since__isnull", False),
                        (
                            "blocker__in",
                            [
                                "provider_unreadable",
                                "list_changing",
                                "database_slow",
                                "journal_unwritable",
                                "journal_unreadable",
                                "journal_gone",
                                "internal_error",
                            ],
                        ),
                        ("blocker__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="release_blocked_has_time",
            ),
        ),
    ]
