"""The database itself refuses every change of the log but an append, on both engines."""

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.audit.models import ChainHead, Entry
from backoffice.operations.monitoring.database_rules import altered_rules


def sql(statement: str) -> Callable[[], object]:
    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return run


ATTEMPTS: dict[str, Callable[[], object]] = {
    "update": lambda: Entry.objects.update(actor_label="Somebody else"),
    "save": lambda: Entry.objects.get().save(),
    "delete": lambda: Entry.objects.all().delete(),
    "raw update": sql("UPDATE audit_entry SET actor_label = 'x'"),
    "raw delete": sql("DELETE FROM audit_entry"),
    "head backwards": lambda: ChainHead.objects.update(position=0),
    "head in place": lambda: ChainHead.objects.update(hash="0" * 64),
    "head ahead": lambda: ChainHead.objects.update(position=3),
    "head deleted": lambda: ChainHead.objects.all().delete(),
    "second head": lambda: ChainHead.objects.create(pk=2),
}
ON_SQLITE = {
    "replace": sql(
        "INSERT OR REPLACE INTO audit_entry SELECT position, at, 'x', address, request_id, action,"
        " target_type, target_id, target_label, detail, version,"
        " previous_hash, hash, actor_id FROM audit_entry"
    )
}
ON_POSTGRESQL = {
    "truncate": sql("SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE audit_entry"),
    "truncate head": sql("TRUNCATE audit_chainhead"),
    "update as a replica": sql(
        "SET LOCAL session_replication_role = replica; UPDATE audit_entry SET actor_label = 'x'"
    ),
    "overwrite on conflict": sql(
        "INSERT INTO audit_entry SELECT * FROM audit_entry ON CONFLICT (position) DO UPDATE SET address = 'x'"
    ),
}


def assert_refused(attempt: Callable[[], object]) -> None:
    entry = record(Action.OPERATION_PREPARED, actor=None)

    with pytest.raises(IntegrityError), transaction.atomic():
        attempt()

    assert [stored.hash for stored in Entry.objects.all()] == [entry.digest()]
    assert ChainHead.objects.get().hash == entry.hash


@pytest.mark.django_db
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_database_refuses_updates_and_deletes(attempt: str) -> None:
    assert_refused(ATTEMPTS[attempt])


@pytest.mark.django_db
@pytest.mark.parametrize("attempt", ON_SQLITE if connection.vendor == "sqlite" else ON_POSTGRESQL)
def test_the_database_refuses_engine_specific_writes(attempt: str) -> None:
    assert_refused({**ON_SQLITE, **ON_POSTGRESQL}[attempt])


@pytest.mark.django_db(transaction=True)
def test_the_migration_with_its_triggers_is_reversible() -> None:
    call_command("migrate", "audit", "zero", verbosity=0)
    assert not {Entry._meta.db_table, ChainHead._meta.db_table} & set(connection.introspection.table_names())
    call_command("migrate", verbosity=0)  # also what depends on it

    assert altered_rules() == []  # although columns have other numbers now
    with transaction.atomic():
        assert_refused(ATTEMPTS["update"])
