"""The database itself refuses every change of the history of transactions but an append.

SQLite drops triggers with their table: a later migration that rebuilds `ledger_transactionchange` has to create them
again.
"""

from django.db import migrations

CREATE_ON_SQLITE = [
    # A recorded change is never altered.
    """
    CREATE TRIGGER ledger_transactionchange_no_update BEFORE UPDATE ON ledger_transactionchange
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
    # A recorded change is never deleted.
    """
    CREATE TRIGGER ledger_transactionchange_no_delete BEFORE DELETE ON ledger_transactionchange
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
    # INSERT OR REPLACE deletes the old row without firing the trigger above.
    """
    CREATE TRIGGER ledger_transactionchange_no_replace BEFORE INSERT ON ledger_transactionchange
    WHEN EXISTS (SELECT 1 FROM ledger_transactionchange WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
]
DROP_ON_SQLITE = [
    "DROP TRIGGER ledger_transactionchange_no_update",
    "DROP TRIGGER ledger_transactionchange_no_delete",
    "DROP TRIGGER ledger_transactionchange_no_replace",
]

CREATE_ON_POSTGRESQL = [
    """
    CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The history of transactions is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    # A recorded change is never altered or deleted.
    """
    CREATE TRIGGER ledger_transactionchange_append_only BEFORE UPDATE OR DELETE ON ledger_transactionchange
    FOR EACH ROW EXECUTE FUNCTION ledger_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER ledger_transactionchange_no_truncate BEFORE TRUNCATE ON ledger_transactionchange
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()
    """,
    # ALWAYS: a session with session_replication_role = replica would skip ordinary triggers.
    "ALTER TABLE ledger_transactionchange ENABLE ALWAYS TRIGGER ledger_transactionchange_append_only",
    "ALTER TABLE ledger_transactionchange ENABLE ALWAYS TRIGGER ledger_transactionchange_no_truncate",
]
DROP_ON_POSTGRESQL = [
    "DROP TRIGGER ledger_transactionchange_append_only ON ledger_transactionchange",
    "DROP TRIGGER ledger_transactionchange_no_truncate ON ledger_transactionchange",
    "DROP FUNCTION ledger_refuse()",
]

CREATE = {"sqlite": CREATE_ON_SQLITE, "postgresql": CREATE_ON_POSTGRESQL}
DROP = {"sqlite": DROP_ON_SQLITE, "postgresql": DROP_ON_POSTGRESQL}


def create_triggers(apps, schema_editor):
    for statement in CREATE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def drop_triggers(apps, schema_editor):
    for statement in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_initial")]

    operations = [migrations.RunPython(create_triggers, drop_triggers)]
