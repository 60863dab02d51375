"""The switch that stops all sending, and operations that are applied here instead of being sent.

The trigger on the table of states is replaced: straight from approved to succeeded goes only what is applied here, and
only if nothing of it was ever sent; from sending back to approved only what has no open attempt, which is the proof that
nothing was executed.
"""

from importlib import import_module

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q
from django.db.models.expressions import Value

_GUARDS = import_module("backoffice.operations.migrations.0002_guard_edges_and_makers")
_NAME, _MOMENT, _TABLE, _BAD_EDGE, _MESSAGE = next(
    rule for rule in _GUARDS.RULES if rule[0] == "operation_known_edges"
)
_APPLIED_HERE = (
    "OLD.status = 'approved' AND NEW.status = 'succeeded' AND NEW.kind IN ('resolution', 'resume') "
    "AND NOT EXISTS (SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id)"
)
_TAKEN_BACK_TOO_SOON = (
    "OLD.status = 'sending' AND NEW.status = 'approved' "
    "AND EXISTS (SELECT 1 FROM operations_attempt WHERE operation_id = NEW.id AND closed_at IS NULL)"
)


def _replace(editor, condition):
    if editor.connection.vendor == "sqlite":
        editor.execute(f"DROP TRIGGER IF EXISTS {_NAME}")
        _GUARDS._create_on_sqlite(editor, _NAME, _MOMENT, _TABLE, condition, _MESSAGE)
    else:
        editor.execute(f"DROP TRIGGER IF EXISTS {_NAME} ON {_TABLE}")
        editor.execute(f"DROP FUNCTION IF EXISTS {_NAME}()")
        _GUARDS._create_on_postgresql(editor, _NAME, _MOMENT, _TABLE, condition, _MESSAGE)


def let_be_applied(_apps, schema_editor):
    _replace(schema_editor, f"(({_BAD_EDGE}) AND NOT ({_APPLIED_HERE})) OR ({_TAKEN_BACK_TOO_SOON})")


def let_be_sent_only(_apps, schema_editor):
    _replace(schema_editor, _BAD_EDGE)


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0006_one_open_attempt_per_balance"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="operation",
            options={
                "default_permissions": ("view",),
                "ordering": ("-prepared_at", "-id"),
                "permissions": [
                    ("prepare_operation", "Can prepare operations that move money"),
                    ("propose_change", "Can prepare changes of keys, accounts and addresses at the service"),
                    ("approve_operation", "Can approve or reject operations that others prepared"),
                    ("release_operation", "Can send approved operations"),
                    ("resolve_operation", "Can propose what became of operations whose outcome is not known"),
                    ("pause_sending", "Can stop all sending alone, and propose that it goes on"),
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
                "constraints": [
                    models.UniqueConstraint(
                        Value(1), condition=Q(ended_at__isnull=True), name="pause_stands_once"
                    ),
                    models.CheckConstraint(
                        condition=Q(ended_at__isnull=True, ended_by__isnull=True)
                        | Q(ended_at__isnull=False, ended_by__isnull=False),
                        name="pause_ended_by_two_people",
                    ),
                ],
            },
        ),
        migrations.RunPython(let_be_applied, let_be_sent_only),
    ]
