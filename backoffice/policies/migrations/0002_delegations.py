"""Delegations, of which only the early end and the seal are ever written again, and which nobody deletes.

SQLite drops triggers with their table: a later migration that rebuilds `policies_delegation` has to create them again.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

from backoffice.core.database.triggers import executes

_CONTENT = "id, person_id, stand_in_id, group_id, starts_at, ends_at, agreed_at, operation"
CREATE_ON_SQLITE = [
    # What two people agreed on is never changed.
    f"""
    CREATE TRIGGER delegation_no_update BEFORE UPDATE OF {_CONTENT} ON policies_delegation
    BEGIN SELECT RAISE(ABORT, 'Delegations are never changed, only ended'); END
    """,
    # An end is never taken back.
    """
    CREATE TRIGGER delegation_ends_once BEFORE UPDATE OF ended_at, ended_by_id ON policies_delegation
    WHEN OLD.ended_at IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'Delegations are never changed, only ended'); END
    """,
    # A delegation is never deleted.
    """
    CREATE TRIGGER delegation_no_delete BEFORE DELETE ON policies_delegation
    BEGIN SELECT RAISE(ABORT, 'Delegations are never changed, only ended'); END
    """,
]
DROP_ON_SQLITE = [
    "DROP TRIGGER delegation_no_update",
    "DROP TRIGGER delegation_ends_once",
    "DROP TRIGGER delegation_no_delete",
]
CREATE_ON_POSTGRESQL = [
    """
    CREATE FUNCTION delegation_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'Delegations are never changed, only ended' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    # What two people agreed on is never changed.
    f"""
    CREATE TRIGGER delegation_no_update BEFORE UPDATE OF {_CONTENT} ON policies_delegation
    FOR EACH ROW EXECUTE FUNCTION delegation_refuse()
    """,
    # An end is never taken back.
    """
    CREATE TRIGGER delegation_ends_once BEFORE UPDATE OF ended_at, ended_by_id ON policies_delegation
    FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION delegation_refuse()
    """,
    # A delegation is never deleted.
    """
    CREATE TRIGGER delegation_no_delete BEFORE DELETE ON policies_delegation
    FOR EACH ROW EXECUTE FUNCTION delegation_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER delegation_no_truncate BEFORE TRUNCATE ON policies_delegation
    FOR EACH STATEMENT EXECUTE FUNCTION delegation_refuse()
    """,
    # ALWAYS: a session with session_replication_role = replica would skip ordinary triggers.
    "ALTER TABLE policies_delegation ENABLE ALWAYS TRIGGER delegation_no_update",
    "ALTER TABLE policies_delegation ENABLE ALWAYS TRIGGER delegation_ends_once",
    "ALTER TABLE policies_delegation ENABLE ALWAYS TRIGGER delegation_no_delete",
    "ALTER TABLE policies_delegation ENABLE ALWAYS TRIGGER delegation_no_truncate",
]
DROP_ON_POSTGRESQL = [
    "DROP TRIGGER delegation_no_update ON policies_delegation",
    "DROP TRIGGER delegation_ends_once ON policies_delegation",
    "DROP TRIGGER delegation_no_delete ON policies_delegation",
    "DROP TRIGGER delegation_no_truncate ON policies_delegation",
    "DROP FUNCTION delegation_refuse()",
]
CREATE = {"sqlite": CREATE_ON_SQLITE, "postgresql": CREATE_ON_POSTGRESQL}
DROP = {"sqlite": DROP_ON_SQLITE, "postgresql": DROP_ON_POSTGRESQL}


def to_a_person(related_name, **options):
    return models.ForeignKey(
        on_delete=django.db.models.deletion.PROTECT,
        related_name=related_name,
        to=settings.AUTH_USER_MODEL,
        **options,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("policies", "0001_versions"),
        ("accounts", "0001_squashed_0005_one_person_alone"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Delegation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seal", models.TextField(editable=False, null=True)),
                ("starts_at", models.DateTimeField()),
                ("ends_at", models.DateTimeField()),
                ("agreed_at", models.DateTimeField()),
                ("operation", models.UUIDField(unique=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", to_a_person("+", null=True)),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.staffgroup",
                    ),
                ),
                ("person", to_a_person("delegations")),
                ("stand_in", to_a_person("stood_in")),
            ],
            options={
                "ordering": ("-starts_at", "-pk"),
                "default_permissions": (),
                "indexes": [models.Index(fields=["ends_at"], name="delegation_in_effect")],
                "constraints": [
                    models.CheckConstraint(
                        condition=~Q(person=F("stand_in")), name="delegation_to_another_person"
                    ),
                    models.CheckConstraint(
                        condition=Q(starts_at__lt=F("ends_at")), name="delegation_has_a_period"
                    ),
                    models.CheckConstraint(
                        condition=Q(ended_at__isnull=True, ended_by__isnull=True)
                        | Q(ended_at__isnull=False, ended_by__isnull=False),
                        name="delegation_ended_by_somebody",
                    ),
                ],
            },
        ),
        migrations.RunPython(executes(CREATE), executes(DROP)),
    ]
