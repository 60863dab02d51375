"""Triggers that keep the changes of rights: a deleted or backdated one would end the wait that it imposes.

A change by one person may still be acknowledged, once. SQLite drops triggers with their table: a later migration that
rebuilds `accounts_rightsgrant` or `accounts_breakglasschange` has to create them again.
"""

from django.db import migrations

from backoffice.core.database.triggers import executes

_OF_THE_CHANGE = "user_id, change, roles, reason, os_user, host, invited_by_id, at"

CREATE_ON_SQLITE = [
    # What two people granted is never changed or deleted.
    """
    CREATE TRIGGER rights_grant_no_update BEFORE UPDATE ON accounts_rightsgrant
    BEGIN SELECT RAISE(ABORT, 'Changes of rights are append-only'); END
    """,
    """
    CREATE TRIGGER rights_grant_no_delete BEFORE DELETE ON accounts_rightsgrant
    BEGIN SELECT RAISE(ABORT, 'Changes of rights are append-only'); END
    """,
    # INSERT OR REPLACE deletes the old row without firing the trigger above.
    """
    CREATE TRIGGER rights_grant_no_replace BEFORE INSERT ON accounts_rightsgrant
    WHEN EXISTS (SELECT 1 FROM accounts_rightsgrant WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'Changes of rights are append-only'); END
    """,
    # Nor what one person changed alone; only its acknowledgement is written later, and once.
    f"""
    CREATE TRIGGER break_glass_no_update BEFORE UPDATE OF {_OF_THE_CHANGE} ON accounts_breakglasschange
    BEGIN SELECT RAISE(ABORT, 'Changes of rights are append-only'); END
    """,
    """
    CREATE TRIGGER break_glass_acknowledged_once BEFORE UPDATE ON accounts_breakglasschange
    WHEN OLD.acknowledged_at IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'Changes of rights are append-only'); END
    """,
    """
    CREATE TRIGGER break_glass_no_delete BEFORE DELETE ON accounts_breakglasschange
    BEGIN SELECT RAISE(ABORT, 'Changes of rights are append-only'); END
    """,
    """
    CREATE TRIGGER break_glass_no_replace BEFORE INSERT ON accounts_breakglasschange
    WHEN EXISTS (SELECT 1 FROM accounts_breakglasschange WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'Changes of rights are append-only'); END
    """,
]
DROP_ON_SQLITE = [
    "DROP TRIGGER rights_grant_no_update",
    "DROP TRIGGER rights_grant_no_delete",
    "DROP TRIGGER rights_grant_no_replace",
    "DROP TRIGGER break_glass_no_update",
    "DROP TRIGGER break_glass_acknowledged_once",
    "DROP TRIGGER break_glass_no_delete",
    "DROP TRIGGER break_glass_no_replace",
]

CREATE_ON_POSTGRESQL = [
    """
    CREATE FUNCTION rights_change_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'Changes of rights are append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    # What two people granted is never changed or deleted.
    """
    CREATE TRIGGER rights_grant_append_only BEFORE UPDATE OR DELETE ON accounts_rightsgrant
    FOR EACH ROW EXECUTE FUNCTION rights_change_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER rights_grant_no_truncate BEFORE TRUNCATE ON accounts_rightsgrant
    FOR EACH STATEMENT EXECUTE FUNCTION rights_change_refuse()
    """,
    # Nor what one person changed alone; only its acknowledgement is written later, and once.
    f"""
    CREATE TRIGGER break_glass_no_update BEFORE UPDATE OF {_OF_THE_CHANGE} ON accounts_breakglasschange
    FOR EACH ROW EXECUTE FUNCTION rights_change_refuse()
    """,
    """
    CREATE TRIGGER break_glass_acknowledged_once BEFORE UPDATE ON accounts_breakglasschange
    FOR EACH ROW WHEN (OLD.acknowledged_at IS NOT NULL) EXECUTE FUNCTION rights_change_refuse()
    """,
    """
    CREATE TRIGGER break_glass_no_delete BEFORE DELETE ON accounts_breakglasschange
    FOR EACH ROW EXECUTE FUNCTION rights_change_refuse()
    """,
    """
    CREATE TRIGGER break_glass_no_truncate BEFORE TRUNCATE ON accounts_breakglasschange
    FOR EACH STATEMENT EXECUTE FUNCTION rights_change_refuse()
    """,
    # ALWAYS: a session with session_replication_role = replica would skip ordinary triggers.
    "ALTER TABLE accounts_rightsgrant ENABLE ALWAYS TRIGGER rights_grant_append_only",
    "ALTER TABLE accounts_rightsgrant ENABLE ALWAYS TRIGGER rights_grant_no_truncate",
    "ALTER TABLE accounts_breakglasschange ENABLE ALWAYS TRIGGER break_glass_no_update",
    "ALTER TABLE accounts_breakglasschange ENABLE ALWAYS TRIGGER break_glass_acknowledged_once",
    "ALTER TABLE accounts_breakglasschange ENABLE ALWAYS TRIGGER break_glass_no_delete",
    "ALTER TABLE accounts_breakglasschange ENABLE ALWAYS TRIGGER break_glass_no_truncate",
]
DROP_ON_POSTGRESQL = [
    "DROP TRIGGER rights_grant_append_only ON accounts_rightsgrant",
    "DROP TRIGGER rights_grant_no_truncate ON accounts_rightsgrant",
    "DROP TRIGGER break_glass_no_update ON accounts_breakglasschange",
    "DROP TRIGGER break_glass_acknowledged_once ON accounts_breakglasschange",
    "DROP TRIGGER break_glass_no_delete ON accounts_breakglasschange",
    "DROP TRIGGER break_glass_no_truncate ON accounts_breakglasschange",
    "DROP FUNCTION rights_change_refuse()",
]
CREATE = {"sqlite": CREATE_ON_SQLITE, "postgresql": CREATE_ON_POSTGRESQL}
DROP = {"sqlite": DROP_ON_SQLITE, "postgresql": DROP_ON_POSTGRESQL}


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_refused_sign_ins"),
    ]

    operations = [
        migrations.RunPython(executes(CREATE), executes(DROP)),
    ]
