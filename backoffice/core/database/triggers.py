"""Create and drop the triggers of migrations, on both engines.

SQLite drops triggers with their table, and a trigger that names a table fails while that table is rebuilt: a later
migration that rebuilds one has to drop the triggers on it, and those that name it, before, and create them again after.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


class Trigger(NamedTuple):
    """Refuses a change that a check constraint cannot, because it compares rows, or old and new values.

    `{is_distinct_from}` in its condition becomes the operator of the engine.
    """

    name: str
    event: str
    table: str
    refused_when: str
    message: str


def create(schema_editor: BaseDatabaseSchemaEditor, triggers: Iterable[Trigger]) -> None:
    """Create these triggers, each with its function on PostgreSQL."""
    create_one = _create_on_sqlite if schema_editor.connection.vendor == "sqlite" else _create_on_postgresql
    for trigger in triggers:
        create_one(schema_editor, trigger)


def drop(schema_editor: BaseDatabaseSchemaEditor, triggers: Iterable[Trigger]) -> None:
    """Drop these triggers, each with its function on PostgreSQL; on SQLite those that no rebuilt table has lost."""
    for trigger in triggers:
        if schema_editor.connection.vendor == "sqlite":
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {trigger.name}")
        else:
            schema_editor.execute(f"DROP TRIGGER {trigger.name} ON {trigger.table}")
            schema_editor.execute(f"DROP FUNCTION {trigger.name}()")


def replace(schema_editor: BaseDatabaseSchemaEditor, trigger: Trigger) -> None:
    """Create this trigger instead of the one that has its name."""
    drop(schema_editor, [trigger])
    create(schema_editor, [trigger])


def executes(
    statements: Mapping[str, Sequence[str]],
) -> Callable[[StateApps, BaseDatabaseSchemaEditor], None]:
    """For RunPython: execute the statements of the engine, by its name."""

    def execute(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        for statement in statements[schema_editor.connection.vendor]:
            schema_editor.execute(statement, params=None)

    return execute


def _create_on_sqlite(schema_editor: BaseDatabaseSchemaEditor, trigger: Trigger) -> None:
    name, event, table, refused_when, message = trigger
    schema_editor.execute(
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} "
        f"FOR EACH ROW WHEN {refused_when.format(is_distinct_from='IS NOT')} "
        f"BEGIN SELECT RAISE(ABORT, '{name}: {message}'); END"
    )


def _create_on_postgresql(schema_editor: BaseDatabaseSchemaEditor, trigger: Trigger) -> None:
    name, event, table, refused_when, message = trigger
    schema_editor.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {refused_when.format(is_distinct_from='IS DISTINCT FROM')} "
        f"THEN RAISE EXCEPTION '{name}: {message}' USING ERRCODE = 'check_violation'; END IF; "
        "RETURN NEW; END $$"
    )
    schema_editor.execute(
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    )
