"""What models declare about the rows of their tables fits the triggers of the database."""

import pytest
from django.db import connection

from backoffice.audit.models import Entry
from backoffice.core.database.writes import rights_by_table

pytestmark = pytest.mark.django_db


def test_every_table_with_a_trigger_against_changes_is_declared_as_such() -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal")
        else:
            cursor.execute("SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger'")
        found = {table for table, name in cursor.fetchall() if name.endswith(("_no_delete", "_append_only"))}
    assert Entry._meta.db_table in found
    assert {table for table in found if rights_by_table()[table].delete} == set()
    assert rights_by_table()[Entry._meta.db_table].columns == frozenset()
