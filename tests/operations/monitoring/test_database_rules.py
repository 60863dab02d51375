"""The triggers and constraints of the database are compared with those that the migrations make."""

import os

import pytest
from django.db import connection

from backoffice.operations.monitoring.database_rules import (
    altered_rules,
    expected_rules,
    present_rules,
    write_expected_rules,
)
from backoffice.operations.monitoring.inspection import inspect

pytestmark = pytest.mark.django_db
ON_SQLITE = connection.vendor == "sqlite"
APPEND_ONLY = f"trigger audit_entry.{'audit_entry_no_update' if ON_SQLITE else 'audit_entry_append_only'}"
NEVER_THE_PREPARER = "constraint operations_approval.approval_never_by_the_preparer"


def execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_the_list_is_what_the_migrations_make_of_an_empty_database() -> None:
    """`make database-rules` writes the list."""
    if "WRITE_DATABASE_RULES" in os.environ:
        write_expected_rules()
    assert dict(expected_rules()) == dict(sorted(present_rules().items()))
    assert altered_rules() == []
    assert {APPEND_ONLY, NEVER_THE_PREPARER} <= set(expected_rules())
