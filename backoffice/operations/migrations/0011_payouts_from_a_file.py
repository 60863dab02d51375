"""Files of payouts, batches and their rows; the triggers that keep the rows, and that let a batch be applied here.

The trigger of the table of states names the kinds that are applied here: it is replaced by one that names `batch` too.
"""

import uuid
from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import backoffice.core.fields

_triggers = import_module("backoffice.operations.migrations.0002_status_and_content_triggers")
_codes = import_module("backoffice.operations.migrations.0010_managed_one_time_codes")

_CONTENT = (
    *("batch_id", "number", "kind", "payload", "digest", "flags", "attention"),
    *("recipient", "recipient_detail", "currency", "amount", "recipient_key"),
)
_OTHER_CONTENT = " OR ".join(f"NEW.{column} {{is_distinct_from}} OLD.{column}" for column in _CONTENT)
_OTHER_LINK = " OR ".join(
    f"(OLD.{column} IS NOT NULL AND NEW.{column} {{is_distinct_from}} OLD.{column})"
    for column in ("operation_id", "duplicate_of_id")
)


ROW_TRIGGERS = (
    # What is approved is all rows as they are: none is added, changed or removed afterwards.
    _triggers.Trigger(
        "batch_row_before_decision",
        "INSERT",
        "operations_batchrow",
        "EXISTS (SELECT 1 FROM operations_operation WHERE id = NEW.batch_id AND status <> 'pending')",
        "the batch was decided",
    ),
    # A row becomes one operation at most, and keeps it.
    _triggers.Trigger(
        "batch_row_keeps_content",
        "UPDATE",
        "operations_batchrow",
        f"{_OTHER_CONTENT} OR {_OTHER_LINK}",
        "a row does not change",
    ),
    _triggers.Trigger("batch_row_stays", "DELETE", "operations_batchrow", "1 = 1", "a row is not removed"),
)


def create_triggers(apps, schema_editor):
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    create = _triggers._create_on_sqlite if is_sqlite else _triggers._create_on_postgresql
    _codes.replace_trigger(schema_editor, _codes.known_edges((*_codes.KINDS_NOW, "batch")))
    for trigger in ROW_TRIGGERS:
        create(schema_editor, trigger)


def drop_triggers(apps, schema_editor):
    for trigger in ROW_TRIGGERS:
        if schema_editor.connection.vendor == "sqlite":
            schema_editor.execute(f"DROP TRIGGER {trigger.name}")
        else:
            schema_editor.execute(f"DROP TRIGGER {trigger.name} ON {trigger.table}")
            schema_editor.execute(f"DROP FUNCTION {trigger.name}()")
    _codes.replace_trigger(schema_editor, _codes.known_edges(_codes.KINDS_NOW))


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0010_managed_one_time_codes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
        migrations.AddConstraint(
            model_name="payoutfile",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("state__in", ["uploaded", "checking", "unreadable", "checked", "submitted"])
                ),
                name="payout_file_state_known",
            ),
        ),
        migrations.AddIndex(
            model_name="payoutfilerow",
            index=models.Index(fields=["file", "has_errors", "number"], name="payout_file_row_errors"),
        ),
        migrations.AddConstraint(
            model_name="payoutfilerow",
            constraint=models.UniqueConstraint(fields=("file", "number"), name="payout_file_row_number_once"),
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
