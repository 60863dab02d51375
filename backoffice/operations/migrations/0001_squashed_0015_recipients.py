"""Operations, and triggers for their rules that a check constraint cannot hold.

SQLite drops triggers with their table, and a trigger that names a table fails while that table is rebuilt: a later
migration that rebuilds `operations_operation`, `operations_approval`, `operations_attempt` or `operations_batchrow` has to
drop these before and create them again after it.

Fields are in the order that the columns have in 0.1.0 on PostgreSQL: the expected rules of the database hold the numbers of
columns.
"""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import backoffice.core.fields
from backoffice.core.database import triggers
from backoffice.core.database.triggers import Trigger

TRANSITIONS = {
    "pending": ("approved", "rejected", "expired", "cancelled"),
    "approved": ("sending", "expired", "cancelled"),
    "sending": ("approved", "processing", "unknown", "succeeded", "failed"),
    "processing": ("succeeded", "failed", "review"),
    "unknown": ("succeeded", "failed", "processing", "review"),
    "review": ("succeeded", "failed"),
}
_IN_THE_TABLE = " OR ".join(
    "(OLD.status = '{}' AND NEW.status IN ({}))".format(start, ", ".join(f"'{end}'" for end in ends))
    for start, ends in TRANSITIONS.items()
)
_NOT_IN_THE_TABLE = f"OLD.status <> NEW.status AND NOT ({_IN_THE_TABLE})"
# What these kinds ask for is applied here and never sent, so such an operation goes from approved to succeeded.
KINDS = (
    "resolution",
    "resume",
    "otp_secret",
    "batch",
    "staff_change",
    "access_review",
    "approval_policy",
    "recipient",
)
_APPLIED_HERE = (
    "OLD.status = 'approved' AND NEW.status = 'succeeded' AND NEW.kind IN ({kinds}) "
    "AND NOT EXISTS (SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id)"
)
# Returning to approved needs proof that nothing was executed, which closes the attempt.
_RETURNED_WITH_AN_OPEN_ATTEMPT = (
    "OLD.status = 'sending' AND NEW.status = 'approved' "
    "AND EXISTS (SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id AND closed_at IS NULL)"
)

CONTENT = (
    "id",
    "reference",
    "kind",
    "payload",
    "digest",
    "sentence",
    "currency",
    "amount",
    "recipient",
    "recipient_detail",
    "approvals_needed",
    "rule",
    "preparer_id",
    "prepared_from_id",
    "prepared_at",
    "policy_version",
    "levels",
)
_OTHER_CONTENT = " OR ".join(f"NEW.{column} {{is_distinct_from}} OLD.{column}" for column in CONTENT)
_OTHER_KEYS = " OR ".join(
    f"(OLD.{column} IS NOT NULL AND (NEW.{column} IS NULL OR NEW.{column} <> OLD.{column}))"
    for column in ("content_key", "recipient_key")
)
_OTHER_PREPARER = (
    "NEW.preparer_id <> (SELECT preparer_id FROM operations_operation WHERE id = NEW.operation_id)"
)


def known_edges(kinds):
    """The trigger of the edges between states, with the kinds that are applied here and never sent.

    Only the edges of the table of states, so that a closed operation is never sent again.
    """
    applied_here = _APPLIED_HERE.format(kinds=", ".join(f"'{kind}'" for kind in kinds))
    return Trigger(
        "operation_known_edges",
        "UPDATE OF status",
        "operations_operation",
        f"(({_NOT_IN_THE_TABLE}) AND NOT ({applied_here})) OR ({_RETURNED_WITH_AN_OPEN_ATTEMPT})",
        "no such edge between states",
    )


OPERATION_TRIGGERS = (
    known_edges(KINDS),
    # An operation inserted as approved would bypass its approvals.
    Trigger(
        "operation_begins_pending",
        "INSERT",
        "operations_operation",
        "NEW.status <> 'pending'",
        "begins as pending",
    ),
    # The content that is sent is the content that was approved.
    Trigger(
        "operation_keeps_content",
        "UPDATE",
        "operations_operation",
        _OTHER_CONTENT,
        "its content does not change",
    ),
    # Equal content and equal recipients are found by these keys: once set, they are as immutable as the
    # content.
    Trigger(
        "operation_keeps_keys",
        "UPDATE",
        "operations_operation",
        _OTHER_KEYS,
        "its keys do not change",
    ),
    # "approval_never_by_the_preparer" compares two columns of one row: the preparer named there must be the
    # operation's.
    Trigger(
        "approval_names_preparer", "INSERT", "operations_approval", _OTHER_PREPARER, "the preparer is another"
    ),
    # An approval keeps its approver and the content it was given for.
    Trigger(
        "approval_keeps_preparer",
        "UPDATE",
        "operations_approval",
        f"{_OTHER_PREPARER} OR NEW.approver_id <> OLD.approver_id OR NEW.digest <> OLD.digest",
        "an approval does not change",
    ),
)
# A process that was frozen before its request began, and whose attempt was closed meanwhile, can no longer begin.
BEGINS_ONCE = Trigger(
    "attempt_begins_once",
    "UPDATE OF begun_at",
    "operations_attempt",
    "NEW.begun_at {is_distinct_from} OLD.begun_at "
    "AND (OLD.begun_at IS NOT NULL OR OLD.closed_at IS NOT NULL)",
    "begun already, or closed",
)
ROW_CONTENT = (
    *("batch_id", "number", "kind", "payload", "digest", "flags", "attention"),
    *("recipient", "recipient_detail", "currency", "amount", "recipient_key"),
)
_OTHER_ROW_CONTENT = " OR ".join(f"NEW.{column} {{is_distinct_from}} OLD.{column}" for column in ROW_CONTENT)
_OTHER_LINK = " OR ".join(
    f"(OLD.{column} IS NOT NULL AND NEW.{column} {{is_distinct_from}} OLD.{column})"
    for column in ("operation_id", "duplicate_of_id")
)
ROW_TRIGGERS = (
    # What is approved is all rows as they are: none is added, changed or removed afterwards.
    Trigger(
        "batch_row_before_decision",
        "INSERT",
        "operations_batchrow",
        "EXISTS (SELECT 1 FROM operations_operation WHERE id = NEW.batch_id AND status <> 'pending')",
        "the batch was decided",
    ),
    # A row becomes one operation at most, and keeps it.
    Trigger(
        "batch_row_keeps_content",
        "UPDATE",
        "operations_batchrow",
        f"{_OTHER_ROW_CONTENT} OR {_OTHER_LINK}",
        "a row does not change",
    ),
    Trigger("batch_row_stays", "DELETE", "operations_batchrow", "1 = 1", "a row is not removed"),
)
TRIGGERS = (*OPERATION_TRIGGERS, BEGINS_ONCE, *ROW_TRIGGERS)

FORMER_NAMES = [
    "ALTER INDEX operations_savedview_pkey RENAME TO operations_savedfilter_pkey",
    "ALTER SEQUENCE operations_savedview_id_seq RENAME TO operations_savedfilter_id_seq",
    "ALTER INDEX operations_savedview_person_id_67236a79 RENAME TO operations_savedfilter_person_id_49c133b2",
    "ALTER TABLE operations_savedview RENAME CONSTRAINT operations_savedview_person_id_67236a79_fk_accounts_user_id "
    "TO operations_savedfilter_person_id_49c133b2_fk_accounts_user_id",
]


def create_triggers(apps, schema_editor):
    triggers.create(schema_editor, TRIGGERS)


def drop_triggers(apps, schema_editor):
    triggers.drop(schema_editor, TRIGGERS)


def keep_names(apps, schema_editor):
    """On PostgreSQL the table of saved views has names of the former one, of which it was made in 0.1.0.

    Its index and its constraint do not exist before the end of the migration.
    """
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.deferred_sql += FORMER_NAMES


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("operations", "0001_initial"),
        ("operations", "0002_status_and_content_triggers"),
        ("operations", "0003_saved_views_and_kind_index"),
        ("operations", "0004_look_alikes"),
        ("operations", "0005_seals"),
        ("operations", "0006_leaving_now"),
        ("operations", "0007_journal"),
        ("operations", "0008_pauses_and_reasons"),
        ("operations", "0009_lanes"),
        ("operations", "0010_managed_one_time_codes"),
        ("operations", "0011_payouts_from_a_file"),
        ("operations", "0012_bulk_releases"),
        ("operations", "0013_governance_approvals"),
        ("operations", "0014_policy_versions_and_levels"),
        ("operations", "0015_recipients"),
    ]
    dependencies = [
        ("ledger", "0001_squashed_0004_totals_not_reported"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Operation",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("reference", models.CharField(max_length=12, unique=True)),
                ("kind", models.CharField(max_length=32)),
                ("payload", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("sentence", models.CharField(max_length=300)),
                ("currency", models.CharField(blank=True, max_length=12)),
                ("amount", backoffice.core.fields.ExactDecimalField(null=True)),
                ("recipient", models.CharField(blank=True, max_length=200)),
                ("recipient_detail", models.CharField(blank=True, max_length=200)),
                ("content_key", models.CharField(editable=False, max_length=64)),
                ("recipient_key", models.CharField(editable=False, max_length=200, null=True)),
                ("recipient_account", models.CharField(editable=False, max_length=200, null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("approved", "Approved"),
                            ("sending", "Sending"),
                            ("processing", "Processing"),
                            ("unknown", "Unknown"),
                            ("review", "Review"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("rejected", "Rejected"),
                            ("expired", "Expired"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="pending",
                        max_length=16,
                    ),
                ),
                ("closing_reason", models.JSONField(default=dict)),
                ("approvals_needed", models.PositiveSmallIntegerField()),
                ("rule", models.JSONField()),
                ("prepared_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "prepared_from",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="copies",
                        to="operations.operation",
                    ),
                ),
                (
                    "preparer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="operations_prepared",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("seal", models.TextField(editable=False, null=True)),
                ("policy_version", models.PositiveIntegerField(editable=False, null=True)),
                ("levels", models.JSONField(editable=False, null=True)),
            ],
            options={
                "ordering": ("-prepared_at", "-id"),
                "permissions": [
                    ("prepare_operation", "Can prepare operations that move money"),
                    ("propose_change", "Can prepare changes of keys, accounts and addresses at the provider"),
                    ("approve_operation", "Can approve or reject operations that others prepared"),
                    ("approve_governance_change", "Can approve changes of people that others prepared"),
                    ("release_operation", "Can send approved operations"),
                    ("resolve_operation", "Can prepare resolutions of unknown outcomes"),
                    ("pause_payments", "Can pause payments, and prepare to resume them"),
                ],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["-prepared_at", "-id"], name="operation_newest"),
                    models.Index(fields=["status", "-prepared_at", "-id"], name="operation_by_status"),
                    models.Index(
                        fields=["recipient_key", "amount", "prepared_at"], name="operation_by_recipient"
                    ),
                    models.Index(
                        fields=["recipient_account", "-prepared_at", "-id"], name="operation_by_account"
                    ),
                    models.Index(
                        condition=models.Q(("closed_at__isnull", True)),
                        fields=["-prepared_at", "-id"],
                        name="operation_open",
                    ),
                    models.Index(
                        condition=models.Q(("closed_at__isnull", False)),
                        fields=["closed_at", "status"],
                        name="operation_ended",
                    ),
                    models.Index(
                        condition=models.Q(("decided_at__isnull", False)),
                        fields=["decided_at", "status", "prepared_at"],
                        name="operation_decided",
                    ),
                    models.Index(fields=["kind", "-prepared_at", "-id"], name="operation_by_kind"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("approvals_needed__gte", 1)),
                        name="operation_needs_a_second_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "status__in",
                                [
                                    "pending",
                                    "approved",
                                    "sending",
                                    "processing",
                                    "unknown",
                                    "review",
                                    "succeeded",
                                    "failed",
                                    "rejected",
                                    "expired",
                                    "cancelled",
                                ],
                            )
                        ),
                        name="operation_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("closed_at__isnull", False),
                                ("status__in", ["cancelled", "expired", "failed", "rejected", "succeeded"]),
                            ),
                            models.Q(
                                models.Q(
                                    (
                                        "status__in",
                                        ["cancelled", "expired", "failed", "rejected", "succeeded"],
                                    ),
                                    _negated=True,
                                ),
                                ("closed_at__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="operation_closed_has_time",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("status__in", ["approved", "pending"])),
                        fields=("content_key",),
                        name="operation_content_pending_once",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("digest", models.CharField(max_length=64)),
                ("comment", models.CharField(blank=True, max_length=500)),
                ("approved_at", models.DateTimeField()),
                (
                    "approver",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approvals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "preparer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="approvals",
                        to="operations.operation",
                    ),
                ),
                ("seal", models.TextField(editable=False, null=True)),
            ],
            options={
                "ordering": ("approved_at",),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("operation", "approver"), name="approval_once_per_person"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("approver", models.F("preparer")), _negated=True),
                        name="approval_never_by_the_preparer",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Release",
            fields=[
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="release",
                        serialize=False,
                        to="operations.operation",
                    ),
                ),
                ("released_at", models.DateTimeField(db_index=True)),
                ("expires_at", models.DateTimeField()),
                ("balance", models.CharField(editable=False, max_length=12, null=True)),
                ("encrypted_otp", models.BinaryField(null=True)),
                (
                    "blocker",
                    models.CharField(
                        choices=[
                            ("provider_unreadable", "The provider's data could not be read. {error}"),
                            ("list_changing", "The provider's list changed during every read."),
                            (
                                "database_slow",
                                "The database responded too slowly, so the values checked before sending were out of date.",
                            ),
                            (
                                "journal_unwritable",
                                "The journal of sent requests cannot be written: {error}.",
                            ),
                            (
                                "journal_unreadable",
                                "The journal of sent requests {file} cannot be read: {error}.",
                            ),
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
                ("blocker_parameters", models.JSONField(default=dict, editable=False)),
                ("blocked_since", models.DateTimeField(editable=False, null=True)),
                ("skipped_until", models.DateTimeField(editable=False, null=True)),
                (
                    "released_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("look_alikes", models.JSONField(default=list, editable=False)),
                ("seal", models.TextField(editable=False, null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
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
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("started_at", models.DateTimeField()),
                ("deadline_at", models.DateTimeField()),
                ("balance", models.CharField(editable=False, max_length=12, null=True)),
                ("watermark_transaction_id", models.TextField(blank=True)),
                ("watermark_balance", backoffice.core.fields.ExactDecimalField(null=True)),
                ("watermark_provider_time", models.DateTimeField(db_index=True, null=True)),
                ("watermark_seen_ids", models.JSONField(null=True)),
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
                ("response_status", models.PositiveSmallIntegerField(null=True)),
                ("responses", models.JSONField(default=list)),
                ("provider_transaction_id", models.CharField(max_length=500, null=True, unique=True)),
                ("id_received_at", models.DateTimeField(null=True)),
                ("fee", backoffice.core.fields.ExactDecimalField(null=True)),
                ("result", models.JSONField(null=True)),
                ("checks", models.PositiveIntegerField(default=0)),
                (
                    "check_result",
                    models.CharField(
                        blank=True,
                        choices=[
                            (
                                "not_observable",
                                "The provider's API does not show this outcome. Ask the provider.",
                            ),
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
                ("check_parameters", models.JSONField(default=dict)),
                ("next_check_at", models.DateTimeField(db_index=True, null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "released_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="operations.operation",
                    ),
                ),
                (
                    "resolution",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="operations.operation",
                    ),
                ),
                ("begin_by", models.DateTimeField(null=True)),
                ("begun_at", models.DateTimeField(null=True)),
                ("amount", backoffice.core.fields.ExactDecimalField(editable=False, null=True)),
                ("is_under_way", models.BooleanField(default=False, editable=False)),
            ],
            options={
                "ordering": ("number",),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "number"), name="attempt_number_once"),
                    models.UniqueConstraint(
                        condition=models.Q(("closed_at__isnull", True)),
                        fields=("operation",),
                        name="attempt_one_open_per_operation",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("closed_at__isnull", True), ("outcome", "open")),
                            models.Q(
                                models.Q(("outcome", "open"), _negated=True), ("closed_at__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="attempt_closed_has_outcome",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            models.Q(("closed_at__isnull", True), ("provider_transaction_id__isnull", True)),
                            ("is_under_way", True),
                        ),
                        fields=("balance",),
                        name="attempt_one_under_way_per_balance",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("closed_at__isnull", True), ("provider_transaction_id__isnull", True)
                        ),
                        fields=("balance", "amount"),
                        name="attempt_one_unmatched_per_amount",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Secret",
            fields=[
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="secret",
                        serialize=False,
                        to="operations.operation",
                    ),
                ),
                ("encrypted_at", models.DateTimeField()),
                ("encrypted_value", models.BinaryField()),
                (
                    "viewer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="PayoutFile",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("kind", models.CharField(max_length=32)),
                ("name", models.CharField(max_length=120)),
                ("content", models.BinaryField()),
                ("headers", models.JSONField(default=list)),
                ("mapping", models.JSONField(default=dict)),
                ("language", models.CharField(max_length=8)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploaded", "Uploaded"),
                            ("checking", "Checking"),
                            ("unreadable", "Cannot be read"),
                            ("checked", "Checked"),
                            ("submitted", "Submitted"),
                        ],
                        default="uploaded",
                        max_length=16,
                    ),
                ),
                ("problem", models.JSONField(default=dict)),
                ("row_count", models.PositiveIntegerField(default=0)),
                ("checked_count", models.PositiveIntegerField(default=0)),
                ("error_count", models.PositiveIntegerField(default=0)),
                ("uploaded_at", models.DateTimeField()),
                ("next_check_at", models.DateTimeField(db_index=True, null=True)),
                (
                    "retry_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="operations.operation",
                    ),
                ),
                (
                    "uploader",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("-uploaded_at",),
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("state__in", ["uploaded", "checking", "unreadable", "checked", "submitted"])
                        ),
                        name="payout_file_state_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PayoutFileRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("cells", models.JSONField()),
                ("payload", models.JSONField(null=True)),
                ("errors", models.JSONField(default=list)),
                ("has_errors", models.BooleanField(default=False)),
                ("flags", models.JSONField(default=list)),
                ("currency", models.CharField(blank=True, max_length=12)),
                ("amount", backoffice.core.fields.ExactDecimalField(null=True)),
                ("recipient_key", models.CharField(blank=True, max_length=200)),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rows",
                        to="operations.payoutfile",
                    ),
                ),
            ],
            options={
                "ordering": ("number",),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["file", "has_errors", "number"], name="payout_file_row_errors")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("file", "number"), name="payout_file_row_number_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ColumnMapping",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("mapping", models.JSONField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("person", "kind"), name="column_mapping_once_per_kind")
                ],
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="batch",
                        serialize=False,
                        to="operations.operation",
                    ),
                ),
                ("paused_at", models.DateTimeField(null=True)),
                ("cancelled_at", models.DateTimeField(null=True)),
                ("is_cancelling", models.BooleanField(default=False)),
                (
                    "cancelled_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "paused_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "retry_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="retries",
                        to="operations.operation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("paused_at__isnull", True), ("paused_by__isnull", True)),
                            models.Q(("paused_at__isnull", False), ("paused_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="batch_paused_by_a_person",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("cancelled_at__isnull", True), ("cancelled_by__isnull", True)),
                            models.Q(("cancelled_at__isnull", False), ("cancelled_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="batch_cancelled_by_a_person",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BatchRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=32)),
                ("payload", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("flags", models.JSONField(default=list)),
                ("attention", models.PositiveSmallIntegerField(default=0)),
                ("recipient", models.CharField(max_length=200)),
                ("recipient_detail", models.CharField(blank=True, max_length=200)),
                ("currency", models.CharField(max_length=12)),
                ("amount", backoffice.core.fields.ExactDecimalField()),
                ("recipient_key", models.CharField(max_length=200)),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rows",
                        to="operations.operation",
                    ),
                ),
                (
                    "duplicate_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="operations.operation",
                    ),
                ),
                (
                    "operation",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="batch_row",
                        to="operations.operation",
                    ),
                ),
            ],
            options={
                "ordering": ("number",),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["batch", "-attention", "number"], name="batch_row_flagged"),
                    models.Index(fields=["recipient_key", "currency", "amount"], name="batch_row_recipient"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("batch", "number"), name="batch_row_number_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("operation__isnull", True), ("duplicate_of__isnull", True), _connector="OR"
                        ),
                        name="batch_row_becomes_one_operation_or_none",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkRelease",
            fields=[
                ("seal", models.TextField(editable=False, null=True)),
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("created_at", models.DateTimeField()),
                ("second_factor_at", models.DateTimeField()),
                ("is_pending", models.BooleanField()),
                ("confirmed_at", models.DateTimeField()),
                (
                    "released_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_pending", True)),
                        fields=["confirmed_at"],
                        name="bulk_release_pending",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="BulkReleaseItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("refusal", models.JSONField(null=True)),
                (
                    "bulk_release",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="items",
                        to="operations.bulkrelease",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="operations.operation",
                    ),
                ),
            ],
            options={
                "ordering": ("position",),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("bulk_release", "position"), name="bulk_release_position_once"
                    ),
                    models.UniqueConstraint(
                        fields=("bulk_release", "operation"), name="bulk_release_operation_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LookAlike",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("transaction_id", models.TextField()),
                ("record", models.JSONField()),
                ("found_at", models.DateTimeField()),
                ("declared_at", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "declared_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="look_alikes",
                        to="operations.operation",
                    ),
                ),
            ],
            options={
                "ordering": ("found_at", "pk"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "transaction_id"), name="look_alike_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("declared_at__isnull", True), ("declared_by__isnull", True), ("reason", "")
                            ),
                            models.Q(
                                ("declared_at__isnull", False),
                                ("declared_by__isnull", False),
                                models.Q(("reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="look_alike_declared_with_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("paused_at", models.DateTimeField()),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "ended_by",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="operations.operation",
                    ),
                ),
                (
                    "paused_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "cause",
                    models.CharField(
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
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        models.Value(1),
                        condition=models.Q(("ended_at__isnull", True)),
                        name="pause_one_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at__isnull", True), ("ended_by__isnull", True)),
                            models.Q(("ended_at__isnull", False), ("ended_by__isnull", False)),
                            _connector="OR",
                        ),
                        name="pause_ended_by_two_people",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("cause", ""),
                                ("paused_by__isnull", False),
                                models.Q(("reason", ""), _negated=True),
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
                ],
            },
        ),
        migrations.CreateModel(
            name="Incident",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("now_failed", "Closed as succeeded, but the provider reports it as failed"),
                            (
                                "not_listed",
                                "The provider's list does not show the transaction of this operation",
                            ),
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
                ("evidence", models.JSONField()),
                ("at", models.DateTimeField()),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("note", models.CharField(blank=True, max_length=500)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "further_to",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="followed_by",
                        to="operations.incident",
                    ),
                ),
                (
                    "transaction",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="incidents",
                        to="ledger.transaction",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="incidents",
                        to="operations.operation",
                    ),
                ),
                (
                    "pause",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="incidents",
                        to="operations.pause",
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-pk"),
                "permissions": [("acknowledge_incident", "Can acknowledge incidents")],
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["-at", "-id"], name="incident_newest"),
                    models.Index(
                        condition=models.Q(("acknowledged_at__isnull", True)),
                        fields=["-at", "-id"],
                        name="incident_open",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("further_to__isnull", True)),
                        fields=("operation", "kind"),
                        name="incident_first_once_per_operation",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("further_to__isnull", True)),
                        fields=("transaction",),
                        name="incident_first_once_per_transaction",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("acknowledged_at__isnull", True),
                                ("acknowledged_by__isnull", True),
                                ("note", ""),
                            ),
                            models.Q(
                                ("acknowledged_at__isnull", False),
                                ("acknowledged_by__isnull", False),
                                models.Q(("note", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="incident_acknowledged_by_a_person_with_a_note",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("operation__isnull", True),
                                ("pause__isnull", True),
                                ("transaction__isnull", False),
                            ),
                            models.Q(
                                ("operation__isnull", False),
                                ("pause__isnull", True),
                                ("transaction__isnull", True),
                            ),
                            models.Q(
                                ("operation__isnull", True),
                                ("pause__isnull", False),
                                ("transaction__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="incident_is_about_one_thing",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("further_to__isnull", True)),
                        fields=("pause",),
                        name="incident_first_once_per_pause",
                    ),
                    models.CheckConstraint(
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
                ],
            },
        ),
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
                (
                    "attempt",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lost_attempt",
                        to="operations.attempt",
                    ),
                ),
                (
                    "incident",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="lost_attempts",
                        to="operations.incident",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="lost_attempts",
                        to="operations.operation",
                    ),
                ),
            ],
            options={
                "ordering": ("pk",),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "started_at"), name="lost_attempt_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "outcome__in",
                                ["open", "not_sent", "otp_rejected", "rejected", "succeeded", "failed"],
                            )
                        ),
                        name="lost_attempt_outcome_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Inspection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("took", models.FloatField(default=0)),
                ("violations", models.JSONField(default=dict)),
                ("log_position", models.PositiveBigIntegerField(default=0)),
                ("log_hash", models.CharField(blank=True, max_length=64)),
                ("inspected_to", models.UUIDField(null=True)),
                ("approved_count", models.PositiveIntegerField(default=0)),
                ("median_approval_time", models.DurationField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="inspection_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                ("job", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
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
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "in_use")),
                        fields=("state",),
                        name="otp_secret_one_in_use",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["waiting", "in_use"])),
                        name="otp_secret_state_known",
                    ),
                ],
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
        migrations.CreateModel(
            name="Comparison",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "result",
                    models.CharField(
                        choices=[
                            ("matched", "Matched"),
                            ("mismatched", "Mismatched"),
                            ("missing_at_provider", "Missing at provider"),
                            ("unrecognised", "Unrecognised"),
                            ("pending", "Pending"),
                        ],
                        max_length=20,
                    ),
                ),
                ("occurred_at", models.DateTimeField()),
                ("day", models.DateField()),
                ("currency", models.TextField()),
                ("amount", backoffice.core.fields.UnsignedDecimalField()),
                ("fee", backoffice.core.fields.ExactDecimalField(null=True)),
                ("differences", models.JSONField(blank=True, default=list)),
                ("resembles", models.JSONField(blank=True, default=list)),
                ("needs_incident", models.BooleanField(default=False)),
                (
                    "attempt",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comparison",
                        to="operations.attempt",
                    ),
                ),
                (
                    "transaction",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="comparison",
                        to="ledger.transaction",
                    ),
                ),
            ],
            options={
                "ordering": ("-occurred_at", "-id"),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["-occurred_at", "-id"], name="comparison_newest"),
                    models.Index(fields=["result", "-occurred_at", "-id"], name="comparison_by_result"),
                    models.Index(
                        condition=models.Q(("needs_incident", True)),
                        fields=["id"],
                        name="comparison_needs_incident",
                    ),
                    models.Index(
                        condition=models.Q(
                            ("result", "pending"),
                            models.Q(("result", "missing_at_provider"), ("transaction__isnull", True)),
                            _connector="OR",
                        ),
                        fields=["id"],
                        name="comparison_may_still_appear",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("attempt__isnull", False), ("transaction__isnull", False), _connector="OR"
                        ),
                        name="comparison_is_of_something",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "result__in",
                                ["matched", "mismatched", "missing_at_provider", "unrecognised", "pending"],
                            )
                        ),
                        name="comparison_result_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReconciliationTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("currency", models.TextField()),
                (
                    "result",
                    models.CharField(
                        choices=[
                            ("matched", "Matched"),
                            ("mismatched", "Mismatched"),
                            ("missing_at_provider", "Missing at provider"),
                            ("unrecognised", "Unrecognised"),
                            ("pending", "Pending"),
                        ],
                        max_length=20,
                    ),
                ),
                ("count", models.BigIntegerField()),
                ("amount", backoffice.core.fields.DecimalSumField()),
                ("fee", backoffice.core.fields.DecimalSumField()),
            ],
            options={
                "ordering": ("-day", "currency", "result"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("day", "currency", "result"), name="reconciliation_total_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReconciliationState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("begins_at", models.DateTimeField(null=True)),
                ("at", models.DateTimeField(null=True)),
                ("mirror_as_of", models.DateTimeField(null=True)),
                ("rows_to", models.BigIntegerField(default=0)),
                ("changes_to", models.BigIntegerField(default=0)),
                ("entries_to", models.BigIntegerField(default=0)),
                ("full_pass_begun_at", models.DateTimeField(null=True)),
                ("full_pass_attempts_to", models.BigIntegerField(null=True)),
                ("full_pass_rows_to", models.BigIntegerField(null=True)),
                ("pending_rows_to", models.BigIntegerField(null=True)),
                ("open_attempts_to", models.BigIntegerField(null=True)),
                ("unlisted_to", models.BigIntegerField(null=True)),
                ("unlisted_as_of", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="reconciliation_one_row")
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("is_shared", models.BooleanField(default=False)),
                (
                    "list_name",
                    models.CharField(
                        choices=[("list", "Operations"), ("transactions", "Transactions")],
                        default="list",
                        max_length=20,
                    ),
                ),
                ("filters", models.JSONField()),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="saved_views",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "pk"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("person", "name"), name="saved_view_name_once_per_person")
                ],
            },
        ),
        migrations.RunPython(create_triggers, drop_triggers),
        migrations.RunPython(keep_names, migrations.RunPython.noop),
    ]
