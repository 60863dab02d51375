"""The authenticator secret from which one-time codes are made, the codes that people entered, and their blockers and
incident.

The trigger that knows the edges between states is made anew: an authenticator secret is applied here and never sent.
"""

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_triggers = import_module("backoffice.operations.migrations.0002_status_and_content_triggers")
_KNOWN_EDGES = next(trigger for trigger in _triggers.TRIGGERS if trigger.name == "operation_known_edges")
_APPLIED_FIRST = "NEW.kind IN ('resolution', 'resume') "
KINDS_BEFORE = ("resolution", "resume")
KINDS_NOW = (*KINDS_BEFORE, "otp_secret")


def known_edges(kinds):
    """The trigger of the edges between states, with the kinds that are applied here and never sent."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    applied = f"NEW.kind IN ({names}) "
    return _KNOWN_EDGES._replace(refused_when=_KNOWN_EDGES.refused_when.replace(_APPLIED_FIRST, applied))


def know_the_kind(apps, schema_editor):
    replace_trigger(schema_editor, known_edges(KINDS_NOW))


def forget_the_kind(apps, schema_editor):
    replace_trigger(schema_editor, known_edges(KINDS_BEFORE))


def replace_trigger(schema_editor, trigger):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(f"DROP TRIGGER {trigger.name}")
        _triggers._create_on_sqlite(schema_editor, trigger)
    else:
        schema_editor.execute(f"DROP TRIGGER {trigger.name} ON {trigger.table}")
        schema_editor.execute(f"DROP FUNCTION {trigger.name}()")
        _triggers._create_on_postgresql(schema_editor, trigger)


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0004_totals_not_reported"),
        ("operations", "0009_lanes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="OtpSecret",
            fields=[
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="otp_secret",
                        serialize=False,
                        to="operations.operation",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting for approval"), ("in_use", "In use")],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("fingerprint", models.CharField(max_length=16)),
                ("since", models.DateTimeField()),
                ("encrypted_address", models.BinaryField()),
                ("last_step", models.BigIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="UsedOtp",
            fields=[
                ("hash", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("reference", models.CharField(max_length=12)),
                ("valid_until", models.DateTimeField(db_index=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.RemoveConstraint(
            model_name="incident",
            name="incident_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="release",
            name="release_blocked_has_time",
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
                    (
                        "managed_codes_refused",
                        "The provider refused several one-time codes generated from the stored authenticator secret",
                    ),
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
                            "altered_pause",
                            "managed_codes_refused",
                        ],
                    )
                ),
                name="incident_kind_known",
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
                                "otp_secret_missing",
                                "otp_secret_unreadable",
                                "otp_next_step",
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
        migrations.AddConstraint(
            model_name="otpsecret",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "in_use")), fields=("state",), name="otp_secret_one_in_use"
            ),
        ),
        migrations.AddConstraint(
            model_name="otpsecret",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["waiting", "in_use"])), name="otp_secret_state_known"
            ),
        ),
        migrations.RunPython(know_the_kind, forget_the_kind),
    ]
