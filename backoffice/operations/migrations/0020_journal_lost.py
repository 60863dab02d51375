"""A machine without a journal of sent requests pauses payments: the kind of its incident and the cause of its pause."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0019_sealed_statements"),
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
                    (
                        "journal_lost",
                        "A machine has no journal of sent requests. Payments that were sent may be missing.",
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
                        "The journal of sent requests {file} was deleted or replaced while Countersign was running. Ask the operator to bring it back. If it is lost, restart all processes: payments are then paused until two people resume.",
                    ),
                    (
                        "otp_secret_missing",
                        "No authenticator secret is stored, so no one-time code can be generated. An administrator must store one.",
                    ),
                    (
                        "otp_secret_unreadable",
                        "The authenticator secret cannot be decrypted: its encryption key is not configured. Contact the operator.",
                    ),
                    (
                        "otp_next_step",
                        "It waits for the next one-time code, because the provider accepts each code only once.",
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
                            "journal_lost",
                            "altered_pause",
                            "managed_codes_refused",
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
                        ("cause__in", ["database_restored", "journal_lost", "altered_pause"]),
                        ("paused_by__isnull", True),
                        ("reason", ""),
                    ),
                    _connector="OR",
                ),
                name="pause_by_a_person_or_a_cause",
            ),
        ),
    ]
