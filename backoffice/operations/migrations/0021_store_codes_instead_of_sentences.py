"""Codes with parameters in place of sentences: what differs, incidents, what keeps a release, what a check showed."""

from django.conf import settings
from django.db import migrations, models

_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name LIKE 'operations_%'"
_set_aside = []


def set_triggers_aside(_apps, editor):
    """SQLite builds a changed table anew, and refuses while a trigger of another table reads it."""
    if editor.connection.vendor == "sqlite":
        with editor.connection.cursor() as cursor:
            _set_aside[:] = cursor.execute(_TRIGGERS).fetchall()
        for name, _ in _set_aside:
            editor.execute(f"DROP TRIGGER {name}")


def put_triggers_back(_apps, editor):
    for _, sql in _set_aside:
        editor.execute(sql)
    _set_aside.clear()


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0014_when_the_whole_reading_began"),
        ("operations", "0020_further_evidence_of_movements"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(set_triggers_aside, put_triggers_back),
        migrations.RemoveConstraint(
            model_name="comparison",
            name="comparison_verdict_known",
        ),
        migrations.RemoveConstraint(
            model_name="incident",
            name="incident_first_once_per_operation",
        ),
        migrations.RemoveIndex(
            model_name="comparison",
            name="comparison_may_turn_up",
        ),
        migrations.RemoveField(
            model_name="attempt",
            name="last_check",
        ),
        migrations.RemoveField(
            model_name="comparison",
            name="difference",
        ),
        migrations.RemoveField(
            model_name="incident",
            name="what",
        ),
        migrations.RemoveField(
            model_name="release",
            name="obstacle",
        ),
        migrations.RemoveField(
            model_name="release",
            name="obstacle_since",
        ),
        migrations.AddField(
            model_name="attempt",
            name="check_parameters",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="attempt",
            name="check_result",
            field=models.CharField(
                blank=True,
                choices=[
                    (
                        "not_observable",
                        "No read of the service shows what became of it: people have to ask the service",
                    ),
                    ("provider_unreadable", "The service could not be read: {error}"),
                    ("list_changing", "The service's list changed each time it was read"),
                    (
                        "content_unreadable",
                        "The content cannot be read by this version of the program, so nothing can be done with it.",
                    ),
                    ("done", "The service shows that it is done"),
                    ("not_done", "The service does not show it yet"),
                    ("not_listed", "Not in the service's list yet"),
                    ("several_candidates", "{count} transactions in the list could be this one"),
                    ("candidate_rejected", "{transaction} could be this one, but {reason}"),
                    ("found", "Found as {transaction}: {status}"),
                    (
                        "found_too_early",
                        "Found as {transaction}: {status}; not taken before {not_before} UTC, since ours may come yet",
                    ),
                    (
                        "internal_error",
                        "An error in Countersign itself stands in the way ({error}); the log tells it.",
                    ),
                ],
                max_length=32,
            ),
        ),
        migrations.AddField(
            model_name="comparison",
            name="differences",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name="incident",
            name="kind",
            field=models.CharField(
                choices=[
                    ("now_failed", "The service reports as failed what is closed as succeeded"),
                    ("not_listed", "The service's list does not show its transaction"),
                    ("now_executed", "The service reports as executed what is closed as failed"),
                    (
                        "executed_after_all",
                        "The service shows a debit that looks like this one, which is on record as not executed",
                    ),
                    ("second_debit", "The service shows a second debit that looks like this one"),
                    ("unrecognised", "The service shows a movement that nobody prepared here"),
                    ("record_mismatch", "The service's record is not what was countersigned"),
                    ("fee_mismatch", "The service's record tells another fee than is on record"),
                    ("end_mismatch", "The service's record does not show the end that is on record"),
                    (
                        "named_for_another",
                        "The service gave the transaction that closed this one as the answer to another",
                    ),
                    ("late_answer", "A late answer of the service contradicts what is on record"),
                    (
                        "executed_despite_proof",
                        "Proven not to be executed, and yet the service shows what looks like it",
                    ),
                ],
                default="",
                max_length=32,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="release",
            name="blocked_since",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="release",
            name="blocker",
            field=models.CharField(
                choices=[
                    ("provider_unreadable", "The service cannot be read. {error}"),
                    (
                        "list_changing",
                        "The service cannot be read. The service's list changed each time it was read",
                    ),
                    (
                        "database_slow",
                        "The database answered too slowly, so what had been looked at was too old to act on.",
                    ),
                    (
                        "internal_error",
                        "An error in Countersign itself stands in the way ({error}); the log tells it.",
                    ),
                ],
                editable=False,
                max_length=32,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="release",
            name="blocker_parameters",
            field=models.JSONField(default=dict, editable=False),
        ),
        migrations.AlterField(
            model_name="comparison",
            name="verdict",
            field=models.CharField(
                choices=[
                    ("matched", "Matched"),
                    ("mismatched", "Different"),
                    ("missing_at_provider", "Missing there"),
                    ("unrecognised", "Unknown to us"),
                    ("pending", "Too early to tell"),
                ],
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="verdicttotal",
            name="verdict",
            field=models.CharField(
                choices=[
                    ("matched", "Matched"),
                    ("mismatched", "Different"),
                    ("missing_at_provider", "Missing there"),
                    ("unrecognised", "Unknown to us"),
                    ("pending", "Too early to tell"),
                ],
                max_length=20,
            ),
        ),
        migrations.AddIndex(
            model_name="comparison",
            index=models.Index(
                condition=models.Q(
                    ("verdict", "pending"),
                    models.Q(("transaction__isnull", True), ("verdict", "missing_at_provider")),
                    _connector="OR",
                ),
                fields=["id"],
                name="comparison_may_turn_up",
            ),
        ),
        migrations.AddConstraint(
            model_name="comparison",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "verdict__in",
                        ["matched", "mismatched", "missing_at_provider", "unrecognised", "pending"],
                    )
                ),
                name="comparison_verdict_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.UniqueConstraint(
                condition=models.Q(("further_to__isnull", True)),
                fields=("operation", "kind"),
                name="incident_first_once_per_operation",
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
                            "end_mismatch",
                            "named_for_another",
                            "late_answer",
                            "executed_despite_proof",
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
                            ["provider_unreadable", "list_changing", "database_slow", "internal_error"],
                        ),
                        ("blocker__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="release_blocked_has_time",
            ),
        ),
        migrations.RunPython(put_triggers_back, set_triggers_aside),
    ]
