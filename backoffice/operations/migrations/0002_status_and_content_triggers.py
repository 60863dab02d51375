"""Triggers for rules that a check constraint cannot hold, because they compare rows, or old and new values.

SQLite drops triggers with their table, and a trigger that names a table fails while that table is rebuilt: a
later migration that rebuilds `operations_operation`, `operations_approval` or `operations_attempt` has to
drop these before and create them again after it.
"""

from typing import NamedTuple

from django.db import migrations

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
# A resolution or a resume is applied here and never sent, so it goes from approved to succeeded.
_APPLIED_HERE = (
    "OLD.status = 'approved' AND NEW.status = 'succeeded' AND NEW.kind IN ('resolution', 'resume') "
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
)
_OTHER_CONTENT = " OR ".join(f"NEW.{column} {{is_distinct_from}} OLD.{column}" for column in CONTENT)
_OTHER_KEYS = " OR ".join(
    f"(OLD.{column} IS NOT NULL AND (NEW.{column} IS NULL OR NEW.{column} <> OLD.{column}))"
    for column in ("content_key", "recipient_key")
)
_OTHER_PREPARER = (
    "NEW.preparer_id <> (SELECT preparer_id FROM operations_operation WHERE id = NEW.operation_id)"
)


class Trigger(NamedTuple):
    name: str
    event: str
    table: str
    refused_when: str
    message: str


TRIGGERS = (
    # Only the edges of the table of states, so that a closed operation is never sent again.
    Trigger(
        "operation_known_edges",
        "UPDATE OF status",
        "operations_operation",
        f"(({_NOT_IN_THE_TABLE}) AND NOT ({_APPLIED_HERE})) OR ({_RETURNED_WITH_AN_OPEN_ATTEMPT})",
        "no such edge between states",
    ),
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


def create_triggers(apps, schema_editor):
    create = _create_on_sqlite if schema_editor.connection.vendor == "sqlite" else _create_on_postgresql
    for trigger in TRIGGERS:
        create(schema_editor, trigger)


def drop_triggers(apps, schema_editor):
    for name, _, table, _, _ in TRIGGERS:
        if schema_editor.connection.vendor == "sqlite":
            schema_editor.execute(f"DROP TRIGGER {name}")
        else:
            schema_editor.execute(f"DROP TRIGGER {name} ON {table}")
            schema_editor.execute(f"DROP FUNCTION {name}()")


def _create_on_sqlite(schema_editor, trigger):
    name, event, table, refused_when, message = trigger
    schema_editor.execute(
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} "
        f"FOR EACH ROW WHEN {refused_when.format(is_distinct_from='IS NOT')} "
        f"BEGIN SELECT RAISE(ABORT, '{name}: {message}'); END"
    )


def _create_on_postgresql(schema_editor, trigger):
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


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_initial")]

    operations = [migrations.RunPython(create_triggers, drop_triggers)]
