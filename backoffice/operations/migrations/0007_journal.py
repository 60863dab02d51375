# The journals outside the database, and what a restored database lacks

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0003_search_by_names"),
        ("operations", "0006_leaving_now"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="LostAttempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                ("started_at", models.DateTimeField()),
                ("machine", models.CharField(max_length=255)),
                ("line", models.JSONField()),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("open", "No outcome yet"),
                            ("not_sent", "Not sent"),
                            ("otp_rejected", "One-time code refused"),
                            ("rejected", "Refused by the provider"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed at the provider"),
                        ],
                        default="open",
                        max_length=16,
                    ),
                ),
                ("transaction_id", models.TextField(blank=True)),
            ],
            options={
                "ordering": ("pk",),
                "default_permissions": (),
            },
        ),
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
            name="pause",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="incidents",
                to="operations.pause",
            ),
        ),
        migrations.AddField(
            model_name="pause",
            name="cause",
            field=models.CharField(
                blank=True,
                choices=[
                    (
                        "database_restored",
                        "The database was restored to an earlier point in time, or a standby server took over. Payments that were sent may be missing.",
                    )
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
                ],
                max_length=32,
            ),
        ),
        migrations.AlterField(
            model_name="pause",
            name="paused_by",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="pause",
            name="reason",
            field=models.CharField(blank=True, max_length=500),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("operation__isnull", True), ("pause__isnull", True), ("transaction__isnull", False)
                    ),
                    models.Q(
                        ("operation__isnull", False), ("pause__isnull", True), ("transaction__isnull", True)
                    ),
                    models.Q(
                        ("operation__isnull", True), ("pause__isnull", False), ("transaction__isnull", True)
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
                fields=("pause",),
                name="incident_first_once_per_pause",
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
                        ("cause__in", ["database_restored"]), ("paused_by__isnull", True), ("reason", "")
                    ),
                    _connector="OR",
                ),
                name="pause_by_a_person_or_a_cause",
            ),
        ),
        migrations.AddField(
            model_name="lostattempt",
            name="attempt",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="lost_attempt",
                to="operations.attempt",
            ),
        ),
        migrations.AddField(
            model_name="lostattempt",
            name="incident",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="lost_attempts",
                to="operations.incident",
            ),
        ),
        migrations.AddField(
            model_name="lostattempt",
            name="operation",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="lost_attempts",
                to="operations.operation",
            ),
        ),
        migrations.AddConstraint(
            model_name="lostattempt",
            constraint=models.UniqueConstraint(fields=("operation", "started_at"), name="lost_attempt_once"),
        ),
        migrations.AddConstraint(
            model_name="lostattempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("outcome__in", ["open", "not_sent", "otp_rejected", "rejected", "succeeded", "failed"])
                ),
                name="lost_attempt_outcome_known",
            ),
        ),
    ]
