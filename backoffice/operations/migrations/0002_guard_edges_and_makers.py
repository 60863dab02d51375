"""The database's own word on the rules that a check constraint cannot hold.

An operation begins as pending, moves along the table of states only, and never changes what was countersigned; an
approval names the operation's real maker, so that "never by the maker" (a check constraint) cannot be passed by naming
another. On SQLite a later migration that rebuilds one of these tables drops its triggers and must create them again.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

EDGES = {
    "pending": ("approved", "rejected", "expired", "cancelled"),
    "approved": ("sending", "expired", "cancelled"),
    "sending": ("approved", "processing", "unknown", "succeeded", "failed"),
    "processing": ("succeeded", "failed", "review"),
    "unknown": ("succeeded", "failed", "processing", "review"),
    "review": ("succeeded", "failed"),
}
_KNOWN = " OR ".join(
    "(OLD.status = '{}' AND NEW.status IN ({}))".format(start, ", ".join(f"'{end}'" for end in ends))
    for start, ends in EDGES.items()
)
_BAD_EDGE = f"OLD.status <> NEW.status AND NOT ({_KNOWN})"
_CONTENT = [
    "id",
    "reference",
    "kind",
    "payload",
    "digest",
    "sentence",
    "currency",
    "amount",
    "counterparty",
    "counterparty_detail",
    "approvals_needed",
    "rule",
    "maker_id",
    "prepared_from_id",
    "prepared_at",
]
_OTHER_CONTENT = " OR ".join(f"NEW.{column} {{differs}} OLD.{column}" for column in _CONTENT)
_BAD_MAKER = "NEW.maker_id <> (SELECT maker_id FROM operations_operation WHERE id = NEW.operation_id)"

RULES = (
    # name, moment, table, condition, message
    (
        "operation_known_edges",
        "UPDATE OF status",
        "operations_operation",
        _BAD_EDGE,
        "no such edge between states",
    ),
    (
        "operation_begins_pending",
        "INSERT",
        "operations_operation",
        "NEW.status <> 'pending'",
        "begins as pending",
    ),
    (
        "operation_keeps_content",
        "UPDATE",
        "operations_operation",
        _OTHER_CONTENT,
        "its content does not change",
    ),
    ("approval_names_maker", "INSERT", "operations_approval", _BAD_MAKER, "the maker is another"),
    (
        "approval_keeps_maker",
        "UPDATE",
        "operations_approval",
        f"{_BAD_MAKER} OR NEW.approver_id <> OLD.approver_id OR NEW.digest <> OLD.digest",
        "a countersignature does not change",
    ),
)


def create_triggers(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    create = _create_on_sqlite if schema_editor.connection.vendor == "sqlite" else _create_on_postgresql
    differs = "IS NOT" if schema_editor.connection.vendor == "sqlite" else "IS DISTINCT FROM"
    for name, moment, table, condition, message in RULES:
        create(schema_editor, name, moment, table, condition.format(differs=differs), message)


def drop_triggers(_apps: object, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for name, _, table, _, _ in RULES:
        if schema_editor.connection.vendor == "sqlite":
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}")
        else:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name} ON {table}")
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}()")


def _create_on_sqlite(editor, name, moment, table, condition, message):
    editor.execute(
        f"CREATE TRIGGER {name} BEFORE {moment} ON {table} FOR EACH ROW WHEN {condition} "
        f"BEGIN SELECT RAISE(ABORT, '{name}: {message}'); END"
    )


def _create_on_postgresql(editor, name, moment, table, condition, message):
    editor.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {condition} THEN RAISE EXCEPTION '{name}: {message}' USING ERRCODE = 'check_violation'; END IF; "
        "RETURN NEW; END $$"
    )
    editor.execute(f"CREATE TRIGGER {name} BEFORE {moment} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()")


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_operations_and_their_proof")]
    operations = [migrations.RunPython(create_triggers, drop_triggers)]
