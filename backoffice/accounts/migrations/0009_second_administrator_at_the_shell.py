"""The account of the second administrator, made at the shell by one person, is an incident as an invitation is."""

from django.db import migrations, models

from backoffice.core.database.triggers import executes

_OF_THE_CHANGE = "user_id, change, roles, reason, os_user, host, invited_by_id, at"

# SQLite drops them with the table, which the constraint rebuilds (0007_changes_of_rights_stay).
CREATE_ON_SQLITE = [
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
    "DROP TRIGGER break_glass_no_update",
    "DROP TRIGGER break_glass_acknowledged_once",
    "DROP TRIGGER break_glass_no_delete",
    "DROP TRIGGER break_glass_no_replace",
]
CREATE = {"sqlite": CREATE_ON_SQLITE, "postgresql": []}
DROP = {"sqlite": DROP_ON_SQLITE, "postgresql": []}
CHANGES = [
    ("created", "The account of {person} was created"),
    ("roles_changed", "The roles of {person} were changed"),
    ("reactivated", "The account of {person} was reactivated"),
    ("deactivated", "The account of {person} was deactivated"),
    ("password_reset", "The password of {person} was reset"),
    ("second_factor_reset", "Password and second factor of {person} were reset"),
    (
        "invited_alone",
        "One person alone created the account of {person}, of the first two administrators, or renewed its link",
    ),
]


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_sealed_accounts"),
    ]

    operations = [
        migrations.RunPython(executes(DROP), executes(CREATE)),
        migrations.RemoveConstraint(
            model_name="breakglasschange",
            name="break_glass_with_origin",
        ),
        migrations.AlterField(
            model_name="breakglasschange",
            name="change",
            field=models.CharField(choices=CHANGES, max_length=32),
        ),
        migrations.AlterField(
            model_name="rightsgrant",
            name="change",
            field=models.CharField(choices=CHANGES, max_length=32),
        ),
        migrations.AddConstraint(
            model_name="breakglasschange",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        models.Q(("change", "invited_alone"), _negated=True),
                        ("invited_by__isnull", True),
                        models.Q(("reason", ""), _negated=True),
                        models.Q(("os_user", ""), _negated=True),
                        models.Q(("host", ""), _negated=True),
                    ),
                    models.Q(("change", "invited_alone"), ("invited_by__isnull", False)),
                    _connector="OR",
                ),
                name="break_glass_with_origin",
            ),
        ),
        migrations.RunPython(executes(CREATE), executes(DROP)),
    ]
