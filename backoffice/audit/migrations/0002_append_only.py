"""Triggers that make the audit log append-only in the database.

SQLite drops triggers with their table: a later migration that rebuilds `audit_entry` or `audit_chainhead` has
to create them again.
"""

from django.db import migrations

GENESIS = "0" * 64

CREATE_ON_SQLITE = [
    # An entry is never changed.
    """
    CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
    # An entry is never deleted.
    """
    CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
    # INSERT OR REPLACE deletes the old row without firing the trigger above.
    """
    CREATE TRIGGER audit_entry_no_replace BEFORE INSERT ON audit_entry
    WHEN EXISTS (SELECT 1 FROM audit_entry WHERE position = NEW.position)
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
    # The head counts every entry: entries cut off at the end leave it ahead of the log.
    """
    CREATE TRIGGER audit_chainhead_forward BEFORE UPDATE ON audit_chainhead
    WHEN NEW.position <> OLD.position + 1
    BEGIN SELECT RAISE(ABORT, 'The head of the audit log moves one entry at a time'); END
    """,
    # A deleted head could be inserted again at an earlier position.
    """
    CREATE TRIGGER audit_chainhead_no_delete BEFORE DELETE ON audit_chainhead
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
]
DROP_ON_SQLITE = [
    "DROP TRIGGER audit_entry_no_update",
    "DROP TRIGGER audit_entry_no_delete",
    "DROP TRIGGER audit_entry_no_replace",
    "DROP TRIGGER audit_chainhead_forward",
    "DROP TRIGGER audit_chainhead_no_delete",
]

CREATE_ON_POSTGRESQL = [
    """
    CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The audit log is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    # An entry is never changed or deleted.
    """
    CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION audit_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
    """,
    # The head counts every entry: entries cut off at the end leave it ahead of the log.
    """
    CREATE TRIGGER audit_chainhead_forward BEFORE UPDATE ON audit_chainhead
    FOR EACH ROW WHEN (NEW.position <> OLD.position + 1) EXECUTE FUNCTION audit_refuse()
    """,
    # A deleted head could be inserted again at an earlier position.
    """
    CREATE TRIGGER audit_chainhead_no_delete BEFORE DELETE ON audit_chainhead
    FOR EACH ROW EXECUTE FUNCTION audit_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER audit_chainhead_no_truncate BEFORE TRUNCATE ON audit_chainhead
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
    """,
    # ALWAYS: a session with session_replication_role = replica would skip ordinary triggers.
    "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_append_only",
    "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_truncate",
    "ALTER TABLE audit_chainhead ENABLE ALWAYS TRIGGER audit_chainhead_forward",
    "ALTER TABLE audit_chainhead ENABLE ALWAYS TRIGGER audit_chainhead_no_delete",
    "ALTER TABLE audit_chainhead ENABLE ALWAYS TRIGGER audit_chainhead_no_truncate",
]
DROP_ON_POSTGRESQL = [
    "DROP TRIGGER audit_entry_append_only ON audit_entry",
    "DROP TRIGGER audit_entry_no_truncate ON audit_entry",
    "DROP TRIGGER audit_chainhead_forward ON audit_chainhead",
    "DROP TRIGGER audit_chainhead_no_delete ON audit_chainhead",
    "DROP TRIGGER audit_chainhead_no_truncate ON audit_chainhead",
    "DROP FUNCTION audit_refuse()",
]

CREATE = {"sqlite": CREATE_ON_SQLITE, "postgresql": CREATE_ON_POSTGRESQL}
DROP = {"sqlite": DROP_ON_SQLITE, "postgresql": DROP_ON_POSTGRESQL}


def create_chain_head(apps, schema_editor):
    apps.get_model("audit", "ChainHead").objects.create(pk=1, position=0, hash=GENESIS)


def delete_chain_head(apps, schema_editor):
    apps.get_model("audit", "ChainHead").objects.all().delete()


def create_triggers(apps, schema_editor):
    for statement in CREATE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def drop_triggers(apps, schema_editor):
    for statement in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]

    operations = [
        migrations.RunPython(create_chain_head, delete_chain_head),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
