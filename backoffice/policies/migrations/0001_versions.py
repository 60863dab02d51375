"""The versions of the approval policy, which the database lets nobody change, delete or insert between others.

Only the seal may be written again, when keys are rotated. SQLite drops triggers with their table: a later migration that
rebuilds `policies_policyversion` has to create them again.
"""

from django.db import migrations, models

from backoffice.core.database.triggers import executes

CREATE_ON_SQLITE = [
    # A version is never changed.
    """
    CREATE TRIGGER policy_version_no_update
    BEFORE UPDATE OF number, document, digest, operation, in_effect_since ON policies_policyversion
    BEGIN SELECT RAISE(ABORT, 'The versions of a policy are append-only'); END
    """,
    # A version is never deleted.
    """
    CREATE TRIGGER policy_version_no_delete BEFORE DELETE ON policies_policyversion
    BEGIN SELECT RAISE(ABORT, 'The versions of a policy are append-only'); END
    """,
    # Also none that replaces another.
    """
    CREATE TRIGGER policy_version_follows BEFORE INSERT ON policies_policyversion
    WHEN NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM policies_policyversion)
    BEGIN SELECT RAISE(ABORT, 'The versions of a policy are append-only'); END
    """,
]
DROP_ON_SQLITE = [
    "DROP TRIGGER policy_version_no_update",
    "DROP TRIGGER policy_version_no_delete",
    "DROP TRIGGER policy_version_follows",
]
CREATE_ON_POSTGRESQL = [
    """
    CREATE FUNCTION policy_version_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The versions of a policy are append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE FUNCTION policy_version_follows() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM policies_policyversion) THEN
            RAISE EXCEPTION 'The versions of a policy are append-only'
            USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    # A version is never changed.
    """
    CREATE TRIGGER policy_version_no_update
    BEFORE UPDATE OF number, document, digest, operation, in_effect_since ON policies_policyversion
    FOR EACH ROW EXECUTE FUNCTION policy_version_refuse()
    """,
    # A version is never deleted.
    """
    CREATE TRIGGER policy_version_no_delete BEFORE DELETE ON policies_policyversion
    FOR EACH ROW EXECUTE FUNCTION policy_version_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER policy_version_no_truncate BEFORE TRUNCATE ON policies_policyversion
    FOR EACH STATEMENT EXECUTE FUNCTION policy_version_refuse()
    """,
    # Also none between others.
    """
    CREATE TRIGGER policy_version_follows BEFORE INSERT ON policies_policyversion
    FOR EACH ROW EXECUTE FUNCTION policy_version_follows()
    """,
    # ALWAYS: a session with session_replication_role = replica would skip ordinary triggers.
    "ALTER TABLE policies_policyversion ENABLE ALWAYS TRIGGER policy_version_no_update",
    "ALTER TABLE policies_policyversion ENABLE ALWAYS TRIGGER policy_version_no_delete",
    "ALTER TABLE policies_policyversion ENABLE ALWAYS TRIGGER policy_version_no_truncate",
    "ALTER TABLE policies_policyversion ENABLE ALWAYS TRIGGER policy_version_follows",
]
DROP_ON_POSTGRESQL = [
    "DROP TRIGGER policy_version_no_update ON policies_policyversion",
    "DROP TRIGGER policy_version_no_delete ON policies_policyversion",
    "DROP TRIGGER policy_version_no_truncate ON policies_policyversion",
    "DROP TRIGGER policy_version_follows ON policies_policyversion",
    "DROP FUNCTION policy_version_refuse()",
    "DROP FUNCTION policy_version_follows()",
]
CREATE = {"sqlite": CREATE_ON_SQLITE, "postgresql": CREATE_ON_POSTGRESQL}
DROP = {"sqlite": DROP_ON_SQLITE, "postgresql": DROP_ON_POSTGRESQL}


class Migration(migrations.Migration):
    initial = True
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="PolicyVersion",
            fields=[
                ("seal", models.TextField(editable=False, null=True)),
                ("number", models.PositiveIntegerField(primary_key=True, serialize=False)),
                ("document", models.JSONField()),
                ("digest", models.CharField(max_length=64)),
                ("operation", models.UUIDField(unique=True)),
                ("in_effect_since", models.DateTimeField()),
            ],
            options={
                "ordering": ("-number",),
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("number__gte", 1)), name="policy_version_from_one"
                    )
                ],
            },
        ),
        migrations.RunPython(executes(CREATE), executes(DROP)),
    ]
