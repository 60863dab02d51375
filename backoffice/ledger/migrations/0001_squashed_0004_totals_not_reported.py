"""The mirror of the provider's records, its append-only history, and on PostgreSQL the search by names.

SQLite drops triggers with their table: a later migration that rebuilds `ledger_transactionchange` has to create them
again.

`ledger_names` holds each combination of names once. A text is searched in it, not in the transactions, of which there
are far more; its key, a digest of the names, leads to them by an index. Both the table and `names_key` belong to the
search as an index does, so no model has them. SQLite, which keeps small mirrors, scans the transactions.

Each index over the list of transactions gets every column that a filter may ask for, `names_key` among them.
"""

import django.db.models.deletion
from django.db import migrations, models

import backoffice.core.fields
from backoffice.core.database.triggers import executes

HISTORY_ON_SQLITE = [
    # A recorded change is never altered.
    """
    CREATE TRIGGER ledger_transactionchange_no_update BEFORE UPDATE ON ledger_transactionchange
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
    # A recorded change is never deleted.
    """
    CREATE TRIGGER ledger_transactionchange_no_delete BEFORE DELETE ON ledger_transactionchange
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
    # INSERT OR REPLACE deletes the old row without firing the trigger above.
    """
    CREATE TRIGGER ledger_transactionchange_no_replace BEFORE INSERT ON ledger_transactionchange
    WHEN EXISTS (SELECT 1 FROM ledger_transactionchange WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'The history of transactions is append-only'); END
    """,
]
DROP_HISTORY_ON_SQLITE = [
    "DROP TRIGGER ledger_transactionchange_no_update",
    "DROP TRIGGER ledger_transactionchange_no_delete",
    "DROP TRIGGER ledger_transactionchange_no_replace",
]

HISTORY_ON_POSTGRESQL = [
    """
    CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The history of transactions is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    # A recorded change is never altered or deleted.
    """
    CREATE TRIGGER ledger_transactionchange_append_only BEFORE UPDATE OR DELETE ON ledger_transactionchange
    FOR EACH ROW EXECUTE FUNCTION ledger_refuse()
    """,
    # TRUNCATE fires no trigger of a row.
    """
    CREATE TRIGGER ledger_transactionchange_no_truncate BEFORE TRUNCATE ON ledger_transactionchange
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()
    """,
    # ALWAYS: a session with session_replication_role = replica would skip ordinary triggers.
    "ALTER TABLE ledger_transactionchange ENABLE ALWAYS TRIGGER ledger_transactionchange_append_only",
    "ALTER TABLE ledger_transactionchange ENABLE ALWAYS TRIGGER ledger_transactionchange_no_truncate",
]
DROP_HISTORY_ON_POSTGRESQL = [
    "DROP TRIGGER ledger_transactionchange_append_only ON ledger_transactionchange",
    "DROP TRIGGER ledger_transactionchange_no_truncate ON ledger_transactionchange",
    "DROP FUNCTION ledger_refuse()",
]

HISTORY = {"sqlite": HISTORY_ON_SQLITE, "postgresql": HISTORY_ON_POSTGRESQL}
DROP_HISTORY = {"sqlite": DROP_HISTORY_ON_SQLITE, "postgresql": DROP_HISTORY_ON_POSTGRESQL}

NAMES = r"counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id"

PLAIN_INDEXES = {  # of the model, as SQLite has them
    "transaction_newest": "(occurred_at DESC, id DESC)",
    "transaction_by_facet": "(facet_id, occurred_at, id, amount)",
    "transaction_by_amount": "(facet_id, amount, id, occurred_at)",
}
COVERING_INDEXES = {
    "transaction_newest": "(occurred_at DESC, id DESC) INCLUDE (amount, facet_id, names_key)",
    "transaction_by_size": "(amount DESC, id DESC) INCLUDE (occurred_at, facet_id, names_key)",
    "transaction_by_facet": "(facet_id, occurred_at, id) INCLUDE (amount, names_key)",
    "transaction_by_amount": "(facet_id, amount, id) INCLUDE (occurred_at, names_key)",
    "transaction_by_names": "(names_key, occurred_at, id) INCLUDE (amount, facet_id)",
}

SEARCH = [
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE TABLE ledger_names (key uuid PRIMARY KEY, counterparty text NOT NULL, names text NOT NULL)",
    "CREATE INDEX names_by_part ON ledger_names USING gin (names gin_trgm_ops)",
    f"""
    CREATE FUNCTION ledger_note_names() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO ledger_names (key, counterparty, names)
        SELECT md5(names)::uuid, counterparty, names
        FROM (SELECT DISTINCT counterparty,
                     {NAMES} AS names
              FROM new_rows) AS combinations
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$
    """,  # noqa: S608 - our own text
    # Names are searchable as soon as a transaction is, whoever inserts it.
    """
    CREATE TRIGGER transaction_names_of_new AFTER INSERT ON ledger_transaction
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION ledger_note_names()
    """,
    # The provider may change the names of a transaction later.
    """
    CREATE TRIGGER transaction_names_of_changed AFTER UPDATE ON ledger_transaction
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION ledger_note_names()
    """,
    # A column, because an index can include columns only, not expressions.
    f"ALTER TABLE ledger_transaction ADD COLUMN names_key uuid GENERATED ALWAYS AS (md5({NAMES})::uuid) STORED",
]
# The extension stays: something else may use it, and it may have been there before.
DROP_SEARCH = [
    "ALTER TABLE ledger_transaction DROP COLUMN names_key",
    "DROP TRIGGER transaction_names_of_changed ON ledger_transaction",
    "DROP TRIGGER transaction_names_of_new ON ledger_transaction",
    "DROP FUNCTION ledger_note_names()",
    "DROP TABLE ledger_names",
]


def create_search(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        _drop_indexes(schema_editor, PLAIN_INDEXES)
        _execute(schema_editor, SEARCH)
        _create_indexes(schema_editor, COVERING_INDEXES)


def drop_search(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        _drop_indexes(schema_editor, COVERING_INDEXES)
        _execute(schema_editor, DROP_SEARCH)
        _create_indexes(schema_editor, PLAIN_INDEXES)


def _drop_indexes(schema_editor, indexes):
    _execute(schema_editor, [f"DROP INDEX {name}" for name in indexes])


def _create_indexes(schema_editor, indexes):
    _execute(
        schema_editor,
        [f"CREATE INDEX {name} ON ledger_transaction {columns}" for name, columns in indexes.items()],
    )


def _execute(schema_editor, statements):
    for statement in statements:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("ledger", "0001_initial"),
        ("ledger", "0002_append_only_history"),
        ("ledger", "0003_search_by_names"),
        ("ledger", "0004_totals_not_reported"),
    ]
    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Balance",
            fields=[
                ("currency", models.CharField(max_length=12, primary_key=True, serialize=False)),
                ("amount", backoffice.core.fields.ExactDecimalField()),
                ("total_received", backoffice.core.fields.ExactDecimalField(null=True)),
                ("total_sent", backoffice.core.fields.ExactDecimalField(null=True)),
                ("transaction_count", models.BigIntegerField(null=True)),
                ("as_of", models.DateTimeField()),
            ],
            options={
                "ordering": ("currency",),
                "permissions": [("view_transaction", "Can view transactions")],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="BalanceSnapshot",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("currency", models.CharField(max_length=12)),
                ("slot", models.DateTimeField()),
                ("amount", backoffice.core.fields.ExactDecimalField()),
                ("total_received", backoffice.core.fields.ExactDecimalField(null=True)),
                ("total_sent", backoffice.core.fields.ExactDecimalField(null=True)),
                ("transaction_count", models.BigIntegerField(null=True)),
                ("as_of", models.DateTimeField()),
            ],
            options={
                "ordering": ("-as_of", "-id"),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["slot"], name="balance_snapshot_by_slot"),
                    models.Index(fields=["-as_of", "-id"], name="balance_snapshot_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("currency", "slot"), name="balance_snapshot_once_per_slot"
                    )
                ],
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
                ("amount", backoffice.core.fields.UnsignedDecimalField()),
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
                "indexes": [
                    models.Index(fields=["currency", "occurred_at", "id"], name="transaction_by_currency"),
                    models.Index(
                        condition=models.Q(
                            ("previous_balance__isnull", True),
                            ("created_at__isnull", True),
                            ("direction", ""),
                            _connector="OR",
                        ),
                        fields=["currency", "occurred_at"],
                        name="transaction_unplaceable",
                    ),
                    models.Index(
                        condition=models.Q(("missing_since__isnull", False)),
                        fields=["missing_since"],
                        name="transaction_missing",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("transaction_id",), name="transaction_once")],
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
                "indexes": [models.Index(fields=["-seen_at", "-id"], name="transaction_change_newest")],
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
                ("amount", backoffice.core.fields.DecimalSumField()),
                ("fee", backoffice.core.fields.DecimalSumField()),
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
        migrations.CreateModel(
            name="BalanceBreak",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("currency", models.TextField()),
                ("at", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("gap", "Missing transaction"),
                            ("vanished", "Transaction no longer listed"),
                            ("changed", "Transaction changed"),
                            ("fee", "Fee not deducted"),
                            ("unmoved", "Balance not changed"),
                        ],
                        max_length=8,
                    ),
                ),
                ("expected", backoffice.core.fields.DecimalSumField()),
                ("found", backoffice.core.fields.ExactDecimalField()),
                ("difference", backoffice.core.fields.DecimalSumField()),
                ("direction", models.TextField()),
                ("detected_at", models.DateTimeField()),
                (
                    "after",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="broken_chain",
                        to="ledger.transaction",
                    ),
                ),
                (
                    "before",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="ledger.transaction",
                    ),
                ),
            ],
            options={
                "ordering": ("-at", "-id"),
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["currency", "at", "id"], name="break_by_currency"),
                    models.Index(fields=["-at", "-id"], name="break_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ContinuityCheck",
            fields=[
                ("currency", models.TextField(primary_key=True, serialize=False)),
                ("checked_until", models.DateTimeField(null=True)),
                ("completed_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
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
                ("provider_count", models.BigIntegerField(null=True)),
                ("as_of", models.DateTimeField(null=True)),
                ("provider_time", models.DateTimeField(null=True)),
                ("loaded_at", models.DateTimeField(null=True)),
                ("error", models.JSONField(default=dict)),
                ("error_at", models.DateTimeField(null=True)),
                ("round_begun_at", models.DateTimeField(null=True)),
                ("sync_requested_at", models.DateTimeField(null=True)),
                (
                    "pass_depth",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("whole", "the whole list"),
                            ("count", "the whole list, noting each record, to find those that left it"),
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
                ("full_pass_ended_at", models.DateTimeField(null=True)),
                ("full_pass_begun_at", models.DateTimeField(null=True)),
                ("day_begun_at", models.DateTimeField(null=True)),
                ("day_page", models.BigIntegerField(default=1)),
                ("day_total", models.BigIntegerField(default=0)),
                ("day_pass_begun_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.CheckConstraint(condition=models.Q(("pk", 1)), name="mirror_one_row")],
            },
        ),
        migrations.CreateModel(
            name="Sighting",
            fields=[
                ("transaction_id", models.BigIntegerField(primary_key=True, serialize=False)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        # Not in CreateModel, which adds its indexes at the end of the migration, after the search replaces these.
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["-occurred_at", "-id"], name="transaction_newest"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["facet", "occurred_at", "id", "amount"], name="transaction_by_facet"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["facet", "amount", "id", "occurred_at"], name="transaction_by_amount"),
        ),
        migrations.RunPython(executes(HISTORY), executes(DROP_HISTORY)),
        migrations.RunPython(create_search, drop_search),
    ]
