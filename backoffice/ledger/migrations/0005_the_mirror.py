"""Every transaction as the service last told it, what it said before, and sums by day.

SQLite keeps triggers with the table: a later migration that makes it rebuild `ledger_transactionchange` has to create
them again.
"""

import django.db.models.deletion
from django.db import migrations, models

import backoffice.core.fields

SQLITE_INSTALL = [
    """
    CREATE TRIGGER ledger_transactionchange_no_update BEFORE UPDATE ON ledger_transactionchange
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
    """
    CREATE TRIGGER ledger_transactionchange_no_delete BEFORE DELETE ON ledger_transactionchange
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
    # INSERT OR REPLACE removes the old row without firing the trigger above.
    """
    CREATE TRIGGER ledger_transactionchange_no_replace BEFORE INSERT ON ledger_transactionchange
    WHEN EXISTS (SELECT 1 FROM ledger_transactionchange WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
]
SQLITE_REMOVE = [
    "DROP TRIGGER ledger_transactionchange_no_update",
    "DROP TRIGGER ledger_transactionchange_no_delete",
    "DROP TRIGGER ledger_transactionchange_no_replace",
]
POSTGRESQL_INSTALL = [
    """
    CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The history of transactions is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE TRIGGER ledger_transactionchange_append_only BEFORE UPDATE OR DELETE ON ledger_transactionchange
    FOR EACH ROW EXECUTE FUNCTION ledger_refuse()
    """,
    """
    CREATE TRIGGER ledger_transactionchange_no_truncate BEFORE TRUNCATE ON ledger_transactionchange
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()
    """,
    # ALWAYS: not even a session that plays the part of a replica gets around them.
    "ALTER TABLE ledger_transactionchange ENABLE ALWAYS TRIGGER ledger_transactionchange_append_only",
    "ALTER TABLE ledger_transactionchange ENABLE ALWAYS TRIGGER ledger_transactionchange_no_truncate",
]
POSTGRESQL_REMOVE = [
    "DROP TRIGGER ledger_transactionchange_append_only ON ledger_transactionchange",
    "DROP TRIGGER ledger_transactionchange_no_truncate ON ledger_transactionchange",
    "DROP FUNCTION ledger_refuse()",
]
INSTALL = {"sqlite": SQLITE_INSTALL, "postgresql": POSTGRESQL_INSTALL}
REMOVE = {"sqlite": SQLITE_REMOVE, "postgresql": POSTGRESQL_REMOVE}


def install_triggers(apps, schema_editor):
    for statement in INSTALL[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def remove_triggers(apps, schema_editor):
    for statement in REMOVE[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("ledger", "0004_turns"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sighting",
            fields=[
                ("transaction_id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Facet",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("currency", models.TextField()),
                ("type", models.TextField()),
                ("status", models.TextField()),
                ("direction", models.TextField()),
            ],
            options={
                "ordering": ("currency", "type", "status", "direction"),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("currency", "type", "status", "direction"), name="facet_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Mirror",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rows", models.BigIntegerField(default=0)),
                ("listed", models.BigIntegerField(null=True)),
                ("as_of", models.DateTimeField(null=True)),
                ("service_time", models.DateTimeField(null=True)),
                ("loaded_at", models.DateTimeField(null=True)),
                ("problem", models.TextField(blank=True)),
                ("problem_at", models.DateTimeField(null=True)),
                ("round_begun_at", models.DateTimeField(null=True)),
                ("wanted_at", models.DateTimeField(null=True)),
                ("lease_holder", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                (
                    "pass_depth",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("whole", "the whole list"),
                            ("count", "the whole list, noting each record, to find those that left it"),
                            ("day", "a day back"),
                        ],
                        max_length=5,
                    ),
                ),
                ("pass_begun_at", models.DateTimeField(null=True)),
                ("pass_page", models.BigIntegerField(default=1)),
                ("pass_pages", models.BigIntegerField(default=0)),
                ("pass_total", models.BigIntegerField(default=0)),
                ("pass_read", models.BigIntegerField(default=0)),
                ("pass_tries", models.PositiveSmallIntegerField(default=0)),
                ("whole_at", models.DateTimeField(null=True)),
                ("day_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.CheckConstraint(condition=models.Q(("pk", 1)), name="mirror_one_row")],
            },
        ),
        migrations.CreateModel(
            name="Transaction",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("transaction_id", models.TextField()),
                ("currency", models.TextField()),
                ("type", models.TextField()),
                ("status", models.TextField()),
                ("direction", models.TextField()),
                ("occurred_at", models.DateTimeField()),
                ("created_at", models.DateTimeField(null=True)),
                ("updated_at", models.DateTimeField(null=True)),
                ("date", models.TextField()),
                ("amount", backoffice.core.fields.MagnitudeField()),
                ("fee", backoffice.core.fields.ExactDecimalField(null=True)),
                ("previous_balance", backoffice.core.fields.ExactDecimalField(null=True)),
                ("sender_previous_balance", backoffice.core.fields.ExactDecimalField(null=True)),
                ("from_amount", backoffice.core.fields.ExactDecimalField(null=True)),
                ("from_currency", models.TextField()),
                ("sender", models.TextField()),
                ("username", models.TextField()),
                ("counterparty", models.TextField()),
                ("is_from_registered_user", models.BooleanField(null=True)),
                ("business_id", models.TextField()),
                ("version", models.TextField()),
                ("digest", models.BinaryField()),
                ("first_seen_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField(null=True)),
                ("missing_since", models.DateTimeField(null=True)),
                (
                    "facet",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.facet",
                    ),
                ),
            ],
            options={
                "ordering": ("-occurred_at", "-id"),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="TransactionChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("seen_at", models.DateTimeField()),
                ("before", models.JSONField()),
                ("after", models.JSONField()),
                (
                    "transaction",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="changes",
                        to="ledger.transaction",
                    ),
                ),
            ],
            options={
                "ordering": ("-seen_at", "-id"),
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="DayTotal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("count", models.BigIntegerField()),
                ("amount", backoffice.core.fields.SumField()),
                ("fee", backoffice.core.fields.SumField()),
                (
                    "facet",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="ledger.facet",
                    ),
                ),
            ],
            options={
                "ordering": ("-day", "facet"),
                "default_permissions": (),
                "indexes": [models.Index(fields=["facet", "day"], name="day_total_by_facet")],
                "constraints": [models.UniqueConstraint(fields=("day", "facet"), name="day_total_once")],
            },
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["-occurred_at", "-id"], name="transaction_newest"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(
                condition=models.Q(("missing_since__isnull", False)),
                fields=["missing_since"],
                name="transaction_missing",
            ),
        ),
        migrations.AddConstraint(
            model_name="transaction",
            constraint=models.UniqueConstraint(fields=("transaction_id",), name="transaction_once"),
        ),
        migrations.AddIndex(
            model_name="transactionchange",
            index=models.Index(fields=["-seen_at", "-id"], name="transaction_change_newest"),
        ),
        migrations.RunPython(install_triggers, remove_triggers),
    ]
