"""What the list of transactions is read from: each facet in order of time and of amount and, on PostgreSQL, the names.

`ledger_names` has each combination of names once, as transactions come: triggers see to it, whoever writes them. It
belongs to the search as an index does, so there is no model. A text is looked for in it, not in the transactions, of
which there are far more; its key, a digest of the names, leads to them by an index. SQLite, which keeps small mirrors,
looks through the transactions.
"""

from django.db import migrations, models

POSTGRESQL_INSTALL = [
    "CREATE EXTENSION IF NOT EXISTS pg_trgm",
    "CREATE TABLE ledger_names (key uuid PRIMARY KEY, counterparty text NOT NULL, names text NOT NULL)",
    "CREATE INDEX names_by_part ON ledger_names USING gin (names gin_trgm_ops)",
    r"""
    CREATE FUNCTION ledger_note_names() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO ledger_names (key, counterparty, names)
        SELECT md5(names)::uuid, counterparty, names
        FROM (SELECT DISTINCT counterparty,
                     counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id AS names
              FROM told) AS combinations
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER transaction_names_of_new AFTER INSERT ON ledger_transaction
    REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION ledger_note_names()
    """,
    """
    CREATE TRIGGER transaction_names_of_changed AFTER UPDATE ON ledger_transaction
    REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION ledger_note_names()
    """,
    r"""
    INSERT INTO ledger_names (key, counterparty, names)
    SELECT md5(names)::uuid, counterparty, names
    FROM (SELECT DISTINCT counterparty,
                 counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id AS names
          FROM ledger_transaction) AS combinations
    ON CONFLICT DO NOTHING
    """,
    r"""
    CREATE INDEX transaction_by_names ON ledger_transaction (
        (md5(counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id)::uuid), occurred_at, id
    )
    """,
]
# The extension stays: something else may use it, and it may have been there before.
POSTGRESQL_REMOVE = [
    "DROP INDEX transaction_by_names",
    "DROP TRIGGER transaction_names_of_changed ON ledger_transaction",
    "DROP TRIGGER transaction_names_of_new ON ledger_transaction",
    "DROP FUNCTION ledger_note_names()",
    "DROP TABLE ledger_names",
]


def install_names(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for statement in POSTGRESQL_INSTALL:
            schema_editor.execute(statement, params=None)


def remove_names(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for statement in POSTGRESQL_REMOVE:
            schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0005_the_mirror")]

    operations = [
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["facet", "occurred_at", "id", "amount"], name="transaction_by_facet"),
        ),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["facet", "amount", "id", "occurred_at"], name="transaction_by_amount"),
        ),
        migrations.RunPython(install_names, remove_names),
    ]
