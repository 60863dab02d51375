"""Full-text search over the names of transactions, on PostgreSQL only.

`ledger_names` holds each combination of names once. A text is searched in it, not in the transactions, of which there
are far more; its key, a digest of the names, leads to them by an index. Both the table and `names_key` belong to the
search as an index does, so no model has them. SQLite, which keeps small mirrors, scans the transactions.

Each index over the list of transactions gets every column that a filter may ask for, `names_key` among them.
"""

from django.db import migrations

NAMES = r"counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id"

PLAIN_INDEXES = {  # as 0001 creates them
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

CREATE = [
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
DROP = [
    "ALTER TABLE ledger_transaction DROP COLUMN names_key",
    "DROP TRIGGER transaction_names_of_changed ON ledger_transaction",
    "DROP TRIGGER transaction_names_of_new ON ledger_transaction",
    "DROP FUNCTION ledger_note_names()",
    "DROP TABLE ledger_names",
]


def create_search(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        _drop_indexes(schema_editor, PLAIN_INDEXES)
        _execute(schema_editor, CREATE)
        _create_indexes(schema_editor, COVERING_INDEXES)


def drop_search(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        _drop_indexes(schema_editor, COVERING_INDEXES)
        _execute(schema_editor, DROP)
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
    dependencies = [("ledger", "0002_append_only_history")]

    operations = [migrations.RunPython(create_search, drop_search)]
