"""Recipients are imported from files: the rows of an import, the triggers that keep them, and the kind applied here.

And the names of account holders that the bank gives at sending, where they differ from the approved ones.
"""

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from backoffice.core.database import triggers

_squashed = import_module("backoffice.operations.migrations.0001_squashed_0015_recipients")
_delegations = import_module("backoffice.operations.migrations.0016_delegations")
KINDS_NOW = (*_delegations.KINDS_NOW, "recipient_import")

ROW_TRIGGERS = (
    # What is approved is all rows as they are: none is added, changed or removed afterwards.
    triggers.Trigger(
        "imported_row_before_decision",
        "INSERT",
        "operations_importedrow",
        "EXISTS (SELECT 1 FROM operations_operation WHERE id = NEW.operation_id AND status <> 'pending')",
        "the import was decided",
    ),
    triggers.Trigger(
        "imported_row_keeps_content", "UPDATE", "operations_importedrow", "1 = 1", "a row does not change"
    ),
    triggers.Trigger(
        "imported_row_stays", "DELETE", "operations_importedrow", "1 = 1", "a row is not removed"
    ),
)


def create_triggers(apps, schema_editor):
    triggers.replace(schema_editor, _squashed.known_edges(KINDS_NOW))
    triggers.create(schema_editor, ROW_TRIGGERS)


def drop_triggers(apps, schema_editor):
    triggers.drop(schema_editor, ROW_TRIGGERS)
    triggers.replace(schema_editor, _squashed.known_edges(_delegations.KINDS_NOW))


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0017_job_failures"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("payoutfilerow", "similar", models.JSONField(default=list)),
        migrations.CreateModel(
            name="ImportedRow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("payload", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("recipient_key", models.CharField(max_length=200)),
                ("flags", models.JSONField(default=list)),
                ("similar", models.JSONField(default=list)),
                ("attention", models.PositiveSmallIntegerField(default=0)),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imported_rows",
                        to="operations.operation",
                    ),
                ),
            ],
            options={
                "ordering": ("number",),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["operation", "-attention", "number"], name="imported_row_flagged")
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "number"), name="imported_row_number_once"),
                    models.UniqueConstraint(
                        fields=("operation", "recipient_key"), name="imported_row_recipient_once"
                    ),
                ],
            },
        ),
        migrations.AddField("batchrow", "similar", models.JSONField(null=True)),
        migrations.AddField("release", "holder_names", models.JSONField(null=True, editable=False)),
        migrations.AddField("attempt", "name_not_checked", models.JSONField(null=True)),
        migrations.CreateModel(
            name="HolderChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("approved_name", models.CharField(max_length=200)),
                ("name", models.CharField(blank=True, max_length=200)),
                ("found_at", models.DateTimeField()),
                ("confirmed_at", models.DateTimeField(null=True)),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "confirmed_by",
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
                        related_name="holder_changes",
                        to="operations.operation",
                    ),
                ),
            ],
            options={
                "ordering": ("found_at", "pk"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "name"), name="holder_change_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("confirmed_at__isnull", True), ("confirmed_by__isnull", True), ("reason", "")
                            ),
                            models.Q(
                                ("confirmed_at__isnull", False),
                                ("confirmed_by__isnull", False),
                                models.Q(("reason", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="holder_change_confirmed_with_reason",
                    ),
                ],
            },
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
