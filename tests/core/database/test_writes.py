"""What models declare about the rows of their tables fits the triggers of the database."""

import re

import pytest
from django.db import connection

from backoffice.audit.models import Entry
from backoffice.core.database.writes import rights_by_table

pytestmark = pytest.mark.django_db

_REFUSE_DELETE = ("_no_delete", "_append_only", "_row_stays")


def test_every_table_with_a_trigger_against_changes_is_declared_as_such() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal")
        else:
            cursor.execute("SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'")
        found = {table for table, name in cursor.fetchall() if name.endswith(_REFUSE_DELETE)}
    assert Entry._meta.db_table in found
    assert {table for table in found if rights_by_table()[table].delete} == set()
    assert rights_by_table()[Entry._meta.db_table].columns == frozenset()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite triggers only refuse")
def test_what_triggers_insert_into_may_be_inserted_into() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT prosrc FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal"
        )
        sources = " ".join(source for (source,) in cursor.fetchall())
    tables = set(re.findall(r"INSERT INTO (\w+)", sources))
    assert "ledger_names" in tables
    rights = rights_by_table()
    assert {table for table in tables if table not in rights or not rights[table].insert} == set()
    assert re.findall(r"\b(?:UPDATE|DELETE FROM) \w+", sources) == []
