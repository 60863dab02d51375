"""The triggers and constraints of the database are compared with those that the migrations create."""

import os
from pathlib import Path

import pytest
from django.db import connection, transaction

from backoffice.operations.monitoring import database_rules
from backoffice.operations.monitoring.database_rules import (
    altered_rules,
    expected_rules,
    present_rules,
    write_expected_rules,
)
from backoffice.operations.monitoring.inspection import inspect

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]
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


def test_no_definition_depends_on_the_order_of_a_set() -> None:
    migrations = [file for file in ROOT.glob("backoffice/*/migrations/*.py") if "set(" in file.read_text()]
    assert migrations == []


DAMAGE_ON_SQLITE = {
    f"{APPEND_ONLY} is missing": ["DROP TRIGGER audit_entry_no_update"],
    f"{APPEND_ONLY} is changed": [
        "DROP TRIGGER audit_entry_no_update",
        "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry WHEN 1 = 0 BEGIN SELECT 1; END",
    ],
    "trigger operations_operation.helpful is unexpected": [
        "CREATE TRIGGER helpful AFTER INSERT ON operations_operation BEGIN SELECT 1; END"
    ],
    "index operations_attempt.attempt_one_open_per_operation is missing": [
        "DROP INDEX attempt_one_open_per_operation"
    ],
    f"{NEVER_THE_PREPARER} is changed": [
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'NOT (\"approver_id\" = (\"preparer_id\"))', '1')"
        " WHERE name = 'operations_approval'",
    ],
}
DAMAGE_ON_POSTGRESQL = {
    f"{APPEND_ONLY} is missing": ["DROP TRIGGER audit_entry_append_only ON audit_entry"],
    f"{APPEND_ONLY} is changed": ["ALTER TABLE audit_entry DISABLE TRIGGER audit_entry_append_only"],
    "trigger operations_operation.operation_known_edges is changed": [
        "CREATE OR REPLACE FUNCTION operation_known_edges() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN NEW; END $$"
    ],
    "trigger operations_operation.helpful is unexpected": [
        "CREATE TRIGGER helpful BEFORE INSERT ON operations_operation"
        " FOR EACH ROW EXECUTE FUNCTION operation_known_edges()"
    ],
    "index operations_attempt.attempt_one_open_per_operation is missing": [
        "DROP INDEX attempt_one_open_per_operation"
    ],
    f"{NEVER_THE_PREPARER} is missing": [
        "ALTER TABLE operations_approval DROP CONSTRAINT approval_never_by_the_preparer"
    ],
    f"{NEVER_THE_PREPARER} is changed": [
        "ALTER TABLE operations_approval DROP CONSTRAINT approval_never_by_the_preparer",
        "ALTER TABLE operations_approval ADD CONSTRAINT approval_never_by_the_preparer CHECK (true)",
    ],
    "setting session_replication_role is changed": ["SET LOCAL session_replication_role = replica"],
}
DAMAGE = DAMAGE_ON_SQLITE if ON_SQLITE else DAMAGE_ON_POSTGRESQL


@pytest.mark.parametrize("problem", DAMAGE)
def test_a_rule_that_lacks_or_differs_is_named(problem: str) -> None:
    try:
        with transaction.atomic():
            execute(*DAMAGE[problem])
            assert altered_rules() == [problem]
            assert inspect(full=False).violations["database_rule_altered"]["references"] == [problem]
            transaction.set_rollback(True)
    finally:
        # After the rollback: a connection keeps the schema that it read last, whatever is rolled back later.
        if ON_SQLITE:
            execute("PRAGMA writable_schema = RESET")


if not ON_SQLITE:

    def test_foreign_keys_that_are_not_enforced_are_named() -> None:
        execute("ALTER TABLE operations_approval DISABLE TRIGGER ALL")
        disabled = [name for name in altered_rules() if "_fk_" in name and name.endswith(" is changed")]
        assert len(disabled) >= 2

    def test_another_version_of_postgresql_may_write_a_constraint_differently(
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(database_rules, "LISTED_POSTGRESQL", 14)
        drop, _ = DAMAGE[f"{NEVER_THE_PREPARER} is changed"]
        execute(
            drop,
            "ALTER TABLE operations_approval ADD CONSTRAINT approval_never_by_the_preparer"
            " CHECK (approver_id <> preparer_id)",
        )
        assert altered_rules() == []

    def test_a_weakened_constraint_is_named_on_any_version(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(database_rules, "LISTED_POSTGRESQL", 14)
        execute(*DAMAGE[f"{NEVER_THE_PREPARER} is changed"])
        assert altered_rules() == [f"enforcement of {NEVER_THE_PREPARER} is changed"]


@pytest.mark.skipif(ON_SQLITE, reason="a copy of SQLite's file has the same definitions")
def test_rules_restored_from_a_dump_are_the_same() -> None:
    """pg_dump writes each rule as PostgreSQL shows it; what is made of that is shown otherwise."""
    before = _shown_rules()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for statements in _dumped_rules():
        execute(*statements)
    after = _shown_rules()
    assert len([rule for rule in before if before[rule] != after[rule]]) > 10  # or this would show nothing
    assert altered_rules() == []


def _shown_rules() -> dict[tuple[str, ...], str]:
    with connection.cursor() as cursor:
        cursor.execute(database_rules._ON_POSTGRESQL, [database_rules._tables()])
        return {tuple(rule): definition for *rule, definition in cursor.fetchall()}


def _dumped_rules() -> list[list[str]]:
    """The statements that make each rule again that has an expression, as pg_dump writes them."""
    ours = database_rules._tables()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE contype = 'c' AND conrelid::regclass::text = ANY(%s)",
            [ours],
        )
        checks = [
            [
                f"ALTER TABLE {table} DROP CONSTRAINT {name}",
                f"ALTER TABLE {table} ADD CONSTRAINT {name} {text}",
            ]
            for table, name, text in cursor.fetchall()
        ]
        cursor.execute(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index"
            " WHERE indisunique AND indpred IS NOT NULL AND indrelid::regclass::text = ANY(%s)",
            [ours],
        )
        indexes = [[f"DROP INDEX {name}", text] for name, text in cursor.fetchall()]
        cursor.execute(
            "SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid), tgenabled FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgrelid::regclass::text = ANY(%s)",
            [ours],
        )
        triggers = [
            [
                f"DROP TRIGGER {name} ON {table}",
                text,
                f"ALTER TABLE {table} ENABLE {'ALWAYS' if enabled == 'A' else ''} TRIGGER {name}",
            ]
            for table, name, text, enabled in cursor.fetchall()
        ]
    return [*checks, *indexes, *triggers]
