"""What the other kinds of operation need: what tells equal content and beneficiaries, what the service made, its secrets.

Columns that may be null are added without rebuilding a table, so the triggers of 0002 stay on SQLite, too.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

KEYS = ("operation_keeps_keys", "operations_operation")
_CHANGED = " OR ".join(
    f"(OLD.{column} IS NOT NULL AND (NEW.{column} IS NULL OR NEW.{column} <> OLD.{column}))"
    for column in ("content_key", "beneficiary_key")
)


def guard_keys(_apps, schema_editor):
    """What tells equal content and equal beneficiaries apart does not change, like the content it is made of (0002)."""
    name, table = KEYS
    message = "its keys do not change"
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(
            f"CREATE TRIGGER {name} BEFORE UPDATE ON {table} FOR EACH ROW WHEN {_CHANGED} "
            f"BEGIN SELECT RAISE(ABORT, '{name}: {message}'); END"
        )
        return
    schema_editor.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {_CHANGED} THEN RAISE EXCEPTION '{name}: {message}' USING ERRCODE = 'check_violation'; END IF; "
        "RETURN NEW; END $$"
    )
    schema_editor.execute(
        f"CREATE TRIGGER {name} BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()"
    )


def unguard_keys(_apps, schema_editor):
    name, table = KEYS
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}")
        return
    schema_editor.execute(f"DROP TRIGGER IF EXISTS {name} ON {table}")
    schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}()")


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0002_guard_edges_and_makers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="operation",
            options={
                "default_permissions": ("view",),
                "ordering": ("-prepared_at", "-id"),
                "permissions": [
                    ("prepare_operation", "Can prepare operations that move money"),
                    ("propose_change", "Can prepare changes of keys, accounts and addresses at the service"),
                    ("approve_operation", "Can approve or reject operations that others prepared"),
                    ("release_operation", "Can send approved operations"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Secret",
            fields=[
                (
                    "operation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="secret",
                        serialize=False,
                        to="operations.operation",
                    ),
                ),
                ("kept_at", models.DateTimeField()),
                ("sealed", models.BinaryField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="attempt",
            name="result",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="operation",
            name="beneficiary_key",
            field=models.CharField(editable=False, max_length=200, null=True),
        ),
        migrations.AddField(
            model_name="operation",
            name="content_key",
            field=models.CharField(editable=False, max_length=64, null=True),
        ),
        migrations.AddIndex(
            model_name="operation",
            index=models.Index(
                fields=["beneficiary_key", "amount", "prepared_at"], name="operation_by_beneficiary"
            ),
        ),
        migrations.AddConstraint(
            model_name="operation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status__in", frozenset(["approved", "pending"]))),
                fields=("content_key",),
                name="operation_content_waits_once",
            ),
        ),
        migrations.AddField(
            model_name="secret",
            name="belongs_to",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.RunPython(guard_keys, unguard_keys),
    ]
