import uuid

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import backoffice.core.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("ledger", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
            ],
            options={
                "ordering": ("-prepared_at", "-id"),
                "permissions": [
                    ("prepare_operation", "Can prepare operations that move money"),
                    ("propose_change", "Can prepare changes of keys, accounts and addresses at the provider"),
                    ("approve_operation", "Can approve or reject operations that others prepared"),
                    ("release_operation", "Can send approved operations"),
                    ("resolve_operation", "Can prepare resolutions of unknown outcomes"),
                    ("pause_payments", "Can pause payments, and prepare to resume them"),
                ],
                "default_permissions": ("view",),
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
                            ("internal_error", "Internal error in Countersign ({error}). See the log."),
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
            ],
            options={
                "ordering": ("number",),
                "default_permissions": (),
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
                            (
                                "second_debit",
                                "The provider shows a second debit similar to this operation",
                            ),
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
            ],
            options={
                "ordering": ("-at", "-pk"),
                "permissions": [("acknowledge_incident", "Can acknowledge incidents")],
                "default_permissions": (),
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
            ],
            options={
                "ordering": ("approved_at",),
                "default_permissions": (),
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
                ("reason", models.CharField(max_length=500)),
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
            name="SavedAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("recipient_key", models.CharField(max_length=200, unique=True)),
                ("bank", models.CharField(max_length=200)),
                ("account_name", models.CharField(max_length=200)),
                ("saved_at", models.DateTimeField()),
                (
                    "saved_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": (django.db.models.functions.text.Lower("name"), "pk"),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SavedFilter",
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
                        related_name="saved_filters",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("name", "pk"),
                "default_permissions": (),
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
                            ("internal_error", "Internal error in Countersign ({error}). See the log."),
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
            ],
            options={
                "default_permissions": (),
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
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(fields=["-prepared_at", "-id"], name="operation_newest"),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(fields=["status", "-prepared_at", "-id"], name="operation_by_status"),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["recipient_key", "amount", "prepared_at"], name="operation_by_recipient"
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["recipient_account", "-prepared_at", "-id"], name="operation_by_account"
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", True)),
                fields=["-prepared_at", "-id"],
                name="operation_open",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", False)),
                fields=["closed_at", "status"],
                name="operation_ended",
            ),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                condition=models.Q(("decided_at__isnull", False)),
                fields=["decided_at", "status", "prepared_at"],
                name="operation_decided",
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(("approvals_needed__gte", 1)), name="operation_needs_a_second_person"
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
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
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("closed_at__isnull", False),
                        (
                            "status__in",
                            ["cancelled", "expired", "failed", "rejected", "succeeded"],
                        ),
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
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", ["approved", "pending"])),
                fields=("content_key",),
                name="operation_content_pending_once",
            ),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(fields=["-at", "-id"], name="incident_newest"),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                condition=models.Q(("acknowledged_at__isnull", True)),
                fields=["-at", "-id"],
                name="incident_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("operation__isnull", True), ("transaction__isnull", False)),
                    models.Q(("operation__isnull", False), ("transaction__isnull", True)),
                    _connector="OR",
                ),
                name="incident_is_about_one_thing",
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
            constraint=models.UniqueConstraint(
                condition=models.Q(("further_to__isnull", True)),
                fields=("transaction",),
                name="incident_first_once_per_transaction",
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
                        ],
                    )
                ),
                name="incident_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="incident",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("acknowledged_at__isnull", True), ("acknowledged_by__isnull", True), ("note", "")
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
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True), ("provider_transaction_id__isnull", True)),
                fields=("balance",),
                name="attempt_one_unmatched_per_balance",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(fields=("operation", "number"), name="attempt_number_once"),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                condition=models.Q(("closed_at__isnull", True)),
                fields=("operation",),
                name="attempt_one_open_per_operation",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("closed_at__isnull", True), ("outcome", "open")),
                    models.Q(models.Q(("outcome", "open"), _negated=True), ("closed_at__isnull", False)),
                    _connector="OR",
                ),
                name="attempt_closed_has_outcome",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                fields=("operation", "approver"), name="approval_once_per_person"
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(("approver", models.F("preparer")), _negated=True),
                name="approval_never_by_the_preparer",
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.UniqueConstraint(
                models.Value(1), condition=models.Q(("ended_at__isnull", True)), name="pause_one_at_a_time"
            ),
        ),
        migrations.AddConstraint(
            model_name="pause",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at__isnull", True), ("ended_by__isnull", True)),
                    models.Q(("ended_at__isnull", False), ("ended_by__isnull", False)),
                    _connector="OR",
                ),
                name="pause_ended_by_two_people",
            ),
        ),
        migrations.AddConstraint(
            model_name="savedaccount",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("name"), name="saved_account_name_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="savedfilter",
            constraint=models.UniqueConstraint(
                fields=("person", "name"), name="saved_filter_name_once_per_person"
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
    ]
