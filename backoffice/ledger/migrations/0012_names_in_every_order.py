"""Each order of the list in an index that has everything a filter asks of a row: its names, by their key, as well.

On PostgreSQL alone, where the key of a transaction's names becomes a column that the database keeps by itself: of an
expression no index can tell, only of columns. It belongs to the search as `ledger_names` does, so the model has none.
Ten million rows are written anew, which takes some minutes; nothing else can read them meanwhile. SQLite stays as it is.

Each currency in the order of time follows, on both: before the rows are written anew it would be built twice.
"""

from django.db import migrations, models

_KEY = r"md5(counterparty || E'\n' || sender || E'\n' || username || E'\n' || business_id)::uuid"
_PLAIN = {
    "transaction_newest": "(occurred_at DESC, id DESC)",
    "transaction_by_facet": "(facet_id, occurred_at, id, amount)",
    "transaction_by_amount": "(facet_id, amount, id, occurred_at)",
    "transaction_by_names": f"(({_KEY}), occurred_at, id)",
}
_COVERING = {
    "transaction_newest": "(occurred_at DESC, id DESC) INCLUDE (amount, facet_id, names_key)",
    "transaction_by_size": "(amount DESC, id DESC) INCLUDE (occurred_at, facet_id, names_key)",
    "transaction_by_facet": "(facet_id, occurred_at, id) INCLUDE (amount, names_key)",
    "transaction_by_amount": "(facet_id, amount, id) INCLUDE (occurred_at, names_key)",
    "transaction_by_names": "(names_key, occurred_at, id) INCLUDE (amount, facet_id)",
}


def cover(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        _replace(
            schema_editor, _PLAIN, _COVERING, f"ADD COLUMN names_key uuid GENERATED ALWAYS AS ({_KEY}) STORED"
        )


def uncover(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        _replace(schema_editor, _COVERING, _PLAIN, "DROP COLUMN names_key")


def _replace(schema_editor, old, new, change):
    """Without indexes the table is written anew faster, and each index is built once."""
    for name in old:
        schema_editor.execute(f"DROP INDEX {name}")
    schema_editor.execute(f"ALTER TABLE ledger_transaction {change}", params=None)
    for name, columns in new.items():
        schema_editor.execute(f"CREATE INDEX {name} ON ledger_transaction {columns}", params=None)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0011_the_books")]

    operations = [
        migrations.RunPython(cover, uncover),
        migrations.AddIndex(
            model_name="transaction",
            index=models.Index(fields=["currency", "occurred_at", "id"], name="transaction_by_currency"),
        ),
    ]
