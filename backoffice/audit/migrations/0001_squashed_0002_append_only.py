"""The audit log, which triggers make append-only in the database, and the first head of its chain.

SQLite drops triggers with their table: a later migration that rebuilds `audit_entry` or `audit_chainhead` has to create
them again.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from backoffice.core.database.triggers import executes

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


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("audit", "0001_initial"),
        ("audit", "0002_append_only"),
    ]
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Entry",
            fields=[
                ("position", models.PositiveBigIntegerField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("actor_label", models.TextField()),
                ("address", models.TextField(blank=True)),
                ("request_id", models.TextField(blank=True)),
                ("action", models.CharField(max_length=64)),
                ("target_type", models.TextField(blank=True)),
                ("target_id", models.TextField(blank=True)),
                ("target_label", models.TextField(blank=True)),
                ("detail", models.JSONField(default=dict)),
                ("version", models.CharField(default="v1", max_length=8)),
                ("previous_hash", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
                (
                    "actor",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "entries",
                "ordering": ["-position"],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["at"], name="audit_entry_at"),
                    models.Index(fields=["actor", "-position"], name="audit_entry_actor"),
                    models.Index(fields=["action", "-position"], name="audit_entry_action"),
                    models.Index(fields=["target_type", "target_id", "-position"], name="audit_entry_target"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ChainHead",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveBigIntegerField(default=0)),
                (
                    "hash",
                    models.CharField(
                        default="0000000000000000000000000000000000000000000000000000000000000000",
                        max_length=64,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="audit_one_chain_head")
                ],
            },
        ),
        migrations.CreateModel(
            name="CheckpointDestination",
            fields=[
                ("address", models.CharField(max_length=500, primary_key=True, serialize=False)),
                ("since", models.DateTimeField()),
                ("position", models.PositiveBigIntegerField(default=0)),
                (
                    "hash",
                    models.CharField(
                        default="0000000000000000000000000000000000000000000000000000000000000000",
                        max_length=64,
                    ),
                ),
                ("delivered_at", models.DateTimeField(null=True)),
                ("compared_at", models.DateTimeField(null=True)),
                ("problem", models.JSONField(default=dict)),
                ("failed_at", models.DateTimeField(null=True)),
                ("fault", models.JSONField(default=dict)),
            ],
            options={
                "ordering": ["address"],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="LastVerification",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("verified", models.PositiveBigIntegerField()),
                ("newest_hash", models.CharField(max_length=64)),
                ("fault", models.JSONField(default=dict)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("pk", 1)), name="audit_one_last_verification")
                ],
            },
        ),
        migrations.RunPython(create_chain_head, migrations.RunPython.noop),
        migrations.RunPython(executes(CREATE), executes(DROP)),
    ]
