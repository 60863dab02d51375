"""Makes the database itself refuse every change of the log but an append.

SQLite keeps triggers with the table: a later migration that makes it rebuild `audit_entry` or
`audit_chainhead` has to create them again.
"""

from django.db import migrations

GENESIS = "0" * 64

SQLITE_INSTALL = [
    """
    CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
    """
    CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
    # INSERT OR REPLACE removes the old row without firing the trigger above.
    """
    CREATE TRIGGER audit_entry_no_replace BEFORE INSERT ON audit_entry
    WHEN EXISTS (SELECT 1 FROM audit_entry WHERE position = NEW.position)
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
    """
    CREATE TRIGGER audit_chainhead_forward BEFORE UPDATE ON audit_chainhead
    WHEN NEW.position <> OLD.position + 1
    BEGIN SELECT RAISE(ABORT, 'The head of the audit log moves one entry at a time'); END
    """,
    """
    CREATE TRIGGER audit_chainhead_no_delete BEFORE DELETE ON audit_chainhead
    BEGIN SELECT RAISE(ABORT, 'The audit log is append-only'); END
    """,
]
SQLITE_REMOVE = [
    "DROP TRIGGER audit_entry_no_update",
    "DROP TRIGGER audit_entry_no_delete",
    "DROP TRIGGER audit_entry_no_replace",
    "DROP TRIGGER audit_chainhead_forward",
    "DROP TRIGGER audit_chainhead_no_delete",
]

POSTGRESQL_INSTALL = [
    """
    CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The audit log is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE TRIGGER audit_entry_append_only BEFORE UPDATE OR DELETE ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION audit_refuse()
    """,
    """
    CREATE TRIGGER audit_entry_no_truncate BEFORE TRUNCATE ON audit_entry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
    """,
    """
    CREATE TRIGGER audit_chainhead_forward BEFORE UPDATE ON audit_chainhead
    FOR EACH ROW WHEN (NEW.position <> OLD.position + 1) EXECUTE FUNCTION audit_refuse()
    """,
    """
    CREATE TRIGGER audit_chainhead_no_delete BEFORE DELETE ON audit_chainhead
    FOR EACH ROW EXECUTE FUNCTION audit_refuse()
    """,
    """
    CREATE TRIGGER audit_chainhead_no_truncate BEFORE TRUNCATE ON audit_chainhead
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
    """,
    # ALWAYS: not even a session that plays the part of a replica gets around them.
    "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_append_only",
    "ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_no_truncate",
    "ALTER TABLE audit_chainhead ENABLE ALWAYS TRIGGER audit_chainhead_forward",
    "ALTER TABLE audit_chainhead ENABLE ALWAYS TRIGGER audit_chainhead_no_delete",
    "ALTER TABLE audit_chainhead ENABLE ALWAYS TRIGGER audit_chainhead_no_truncate",
]
POSTGRESQL_REMOVE = [
    "DROP TRIGGER audit_entry_append_only ON audit_entry",
    "DROP TRIGGER audit_entry_no_truncate ON audit_entry",
    "DROP TRIGGER audit_chainhead_forward ON audit_chainhead",
    "DROP TRIGGER audit_chainhead_no_delete ON audit_chainhead",
    "DROP TRIGGER audit_chainhead_no_truncate ON audit_chainhead",
    "DROP FUNCTION audit_refuse()",
]

INSTALL = {"sqlite": SQLITE_INSTALL, "postgresql": POSTGRESQL_INSTALL}
REMOVE = {"sqlite": SQLITE_REMOVE, "postgresql": POSTGRESQL_REMOVE}


def place_head(apps, schema_editor):
    apps.get_model("audit", "ChainHead").objects.create(pk=1, position=0, hash=GENESIS)


def take_head_away(apps, schema_editor):
    apps.get_model("audit", "ChainHead").objects.all().delete()


def install_triggers(apps, schema_editor):
    for statement in INSTALL[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def remove_triggers(apps, schema_editor):
    for statement in REMOVE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_log_and_chain_head")]

    operations = [
        migrations.RunPython(place_head, take_head_away),
        migrations.RunPython(install_triggers, remove_triggers),
    ]
