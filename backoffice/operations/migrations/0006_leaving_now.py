"""The beginning of a request is committed right before its first byte: once, and only while the attempt is open.

In attempts of earlier releases `begin_by` is null: whether they began is not known, so they are never taken for
not sent. SQLite drops the trigger with its table, see 0002.
"""

from importlib import import_module

from django.db import migrations, models

_triggers = import_module("backoffice.operations.migrations.0002_status_and_content_triggers")

# A process that was frozen before its request began, and whose attempt was closed meanwhile, can no longer begin.
BEGINS_ONCE = _triggers.Trigger(
    "attempt_begins_once",
    "UPDATE OF begun_at",
    "operations_attempt",
    "NEW.begun_at {is_distinct_from} OLD.begun_at "
    "AND (OLD.begun_at IS NOT NULL OR OLD.closed_at IS NOT NULL)",
    "begun already, or closed",
)


def create_trigger(apps, schema_editor):
    is_sqlite = schema_editor.connection.vendor == "sqlite"
    create = _triggers._create_on_sqlite if is_sqlite else _triggers._create_on_postgresql
    create(schema_editor, BEGINS_ONCE)


def drop_trigger(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(f"DROP TRIGGER {BEGINS_ONCE.name}")
    else:
        schema_editor.execute(f"DROP TRIGGER {BEGINS_ONCE.name} ON {BEGINS_ONCE.table}")
        schema_editor.execute(f"DROP FUNCTION {BEGINS_ONCE.name}()")


class Migration(migrations.Migration):
    dependencies = [("operations", "0005_seals")]

    operations = [
        migrations.AddField(model_name="attempt", name="begin_by", field=models.DateTimeField(null=True)),
        migrations.AddField(model_name="attempt", name="begun_at", field=models.DateTimeField(null=True)),
        migrations.RunPython(create_trigger, drop_trigger),
    ]
