"""The versions of recipients, which the database lets nobody change, delete or insert before others.

Only the mark of the newest and the seal may be written again: the seal when keys are rotated. SQLite drops triggers with
their table: a later migration that rebuilds `recipients_recipientversion` has to create them again. PostgreSQL searches
the register by an index of its own; SQLite scans it.
"""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from backoffice.core.database.triggers import executes

_COLUMNS = (
    "id, recipient, number, state, type, key, name, alias, notes, currency, network, bank_code, bank, account, operation, "
    "proposed_by_id, approved_by_id, since, details_since, sort_key, search_text"
)
CREATE_ON_SQLITE = [
    # A version is never changed.
    f"""
    CREATE TRIGGER recipient_version_no_update BEFORE UPDATE OF {_COLUMNS} ON recipients_recipientversion
    BEGIN SELECT RAISE(ABORT, 'The versions of a recipient are append-only'); END
    """,
    # A version is never deleted.
    """
    CREATE TRIGGER recipient_version_no_delete BEFORE DELETE ON recipients_recipientversion
    BEGIN SELECT RAISE(ABORT, 'The versions of a recipient are append-only'); END
    """,
    # Also none that replaces another, or that comes before one.
    """
    CREATE TRIGGER recipient_version_follows BEFORE INSERT ON recipients_recipientversion
    WHEN EXISTS (SELECT 1 FROM recipients_recipientversion WHERE key = NEW.key AND number >= NEW.number)
        OR EXISTS (SELECT 1 FROM recipients_recipientversion WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'The versions of a recipient are append-only'); END
    """,
]
DROP_ON_SQLITE = [
    "DROP TRIGGER recipient_version_no_update",
    "DROP TRIGGER recipient_version_no_delete",
    "DROP TRIGGER recipient_version_follows",
]
CREATE_ON_POSTGRESQL = [
    """
    CREATE FUNCTION recipient_version_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The versions of a recipient are append-only'
        USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE FUNCTION recipient_version_follows() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT 1 FROM recipients_recipientversion WHERE key = NEW.key AND number >= NEW.number) THEN
            RAISE EXCEPTION 'The versions of a recipient are append-only'
            USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    # A version is never changed.
    f"""
    CREATE TRIGGER recipient_version_no_update BEFORE UPDATE OF {_COLUMNS} ON recipients_recipientversion
    FOR EACH ROW EXECUTE FUNCTION recipient_version_refuse()
    """,
    # A version is never deleted.
    """
    CREATE TRIGGER recipient_version_no_delete BEFORE DELETE ON recipients_recipientversion
    FOR EACH ROW EXECUTE FUNCTION recipient_version_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER recipient_version_no_truncate BEFORE TRUNCATE ON recipients_recipientversion
    FOR EACH STATEMENT EXECUTE FUNCTION recipient_version_refuse()
    """,
    # Also none that comes before another.
    """
    CREATE TRIGGER recipient_version_follows BEFORE INSERT ON recipients_recipientversion
    FOR EACH ROW EXECUTE FUNCTION recipient_version_follows()
    """,
    # ALWAYS: a session with session_replication_role = replica would skip ordinary triggers.
    "ALTER TABLE recipients_recipientversion ENABLE ALWAYS TRIGGER recipient_version_no_update",
    "ALTER TABLE recipients_recipientversion ENABLE ALWAYS TRIGGER recipient_version_no_delete",
    "ALTER TABLE recipients_recipientversion ENABLE ALWAYS TRIGGER recipient_version_no_truncate",
    "ALTER TABLE recipients_recipientversion ENABLE ALWAYS TRIGGER recipient_version_follows",
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    """
    CREATE INDEX recipient_by_part ON recipients_recipientversion USING gin (search_text gin_trgm_ops)
    WHERE is_newest
    """,
]
# The extension stays: something else may use it, and it may have been there before.
DROP_ON_POSTGRESQL = [
    "DROP INDEX recipient_by_part",
    "DROP TRIGGER recipient_version_no_update ON recipients_recipientversion",
    "DROP TRIGGER recipient_version_no_delete ON recipients_recipientversion",
    "DROP TRIGGER recipient_version_no_truncate ON recipients_recipientversion",
    "DROP TRIGGER recipient_version_follows ON recipients_recipientversion",
    "DROP FUNCTION recipient_version_refuse()",
    "DROP FUNCTION recipient_version_follows()",
]
CREATE = {"sqlite": CREATE_ON_SQLITE, "postgresql": CREATE_ON_POSTGRESQL}
DROP = {"sqlite": DROP_ON_SQLITE, "postgresql": DROP_ON_POSTGRESQL}


class Migration(migrations.Migration):
    initial = True
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="RecipientVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seal", models.TextField(editable=False, null=True)),
                ("recipient", models.UUIDField(default=uuid.uuid4)),
                ("number", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("suggested", "Suggested"),
                            ("approved", "Approved"),
                            ("retired", "Retired"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("bank", "Bank account"),
                            ("address", "Crypto address"),
                            ("user", "User of the provider"),
                        ],
                        max_length=10,
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("name", models.CharField(max_length=200)),
                ("alias", models.CharField(blank=True, max_length=60)),
                ("notes", models.CharField(blank=True, max_length=300)),
                ("currency", models.CharField(blank=True, max_length=10)),
                ("network", models.CharField(blank=True, max_length=40)),
                ("bank_code", models.CharField(blank=True, max_length=20)),
                ("bank", models.CharField(blank=True, max_length=200)),
                ("account", models.CharField(max_length=128)),
                ("operation", models.UUIDField(null=True)),
                ("since", models.DateTimeField()),
                ("details_since", models.DateTimeField()),
                ("is_newest", models.BooleanField(default=True)),
                ("sort_key", models.CharField(editable=False, max_length=200)),
                ("search_text", models.TextField(editable=False)),
                (
                    "approved_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "proposed_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_newest", True)),
                        fields=["sort_key", "id"],
                        name="recipient_by_name",
                    ),
                    models.Index(
                        condition=models.Q(("is_newest", True)),
                        fields=["state", "sort_key", "id"],
                        name="recipient_by_state",
                    ),
                    models.Index(fields=["recipient", "-number"], name="recipient_versions"),
                    models.Index(fields=["operation"], name="recipient_by_operation"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("key", "number"), name="recipient_version_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("approved_by__isnull", True),
                                ("number", 0),
                                ("operation__isnull", True),
                                ("state", "suggested"),
                            ),
                            models.Q(
                                ("approved_by__isnull", False),
                                ("number__gte", 1),
                                ("operation__isnull", False),
                                models.Q(("state", "suggested"), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="recipient_version_agreed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("approved_by", models.F("proposed_by")), _negated=True),
                        name="recipient_version_two_people",
                    ),
                ],
            },
        ),
        migrations.RunPython(executes(CREATE), executes(DROP)),
    ]
