"""Lists and search with sixty thousand operations: what each page asks of the database, how, and its size."""

import random
import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import AutoField, Model, Q, QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations import selectors
from backoffice.operations.approval.waiting import waiting_for
from backoffice.operations.models.monitoring import Inspection
from backoffice.operations.models.operations import Attempt, Operation, verification_code
from backoffice.operations.pages.operation_list import TABS
from backoffice.operations.pages.overview import status_counts
from backoffice.operations.selectors import NEWEST_FIRST
from backoffice.operations.states import CLOSED, Status
from tests import factories
from tests.append_only.triggers import lifted

pytestmark = pytest.mark.django_db

HOW_MANY, STILL_OPEN, SENT = 60_000, 200, 6_000
SEED = 4
QUERIES_AT_MOST, HTML_AT_MOST = 9, 14 * 1024
BANKS = ("Access Bank", "Zenith Bank", "First Bank of Nigeria", "Guaranty Trust Bank")
ENDS = (*[Status.SUCCEEDED] * 8, Status.FAILED, Status.REJECTED, Status.EXPIRED, Status.CANCELLED)
UNDER_WAY = (*[Status.PENDING] * 6, Status.APPROVED, Status.PROCESSING, Status.UNKNOWN, Status.REVIEW)
PAYLOAD = factories.payload().stored()
NOBODYS_ACCOUNT = "0000000000"


def seed(preparer: User, releaser: User) -> None:
    """Withdrawals of two years, most of them done; as an import would put them there, past the services."""
    chance, now = random.Random(SEED), timezone.now()  # noqa: S311 - the same every time, no secret
    operations = [_operation(chance, number, now) for number in range(HOW_MANY)]
    sent = [one for one in operations[:: HOW_MANY // SENT] if one["status"] == Status.SUCCEEDED]
    rule = {"code": "one_approver"}
    with lifted(connection):
        insert(
            Operation(kind="withdrawal", currency="NGN", approvals_needed=1, rule=rule, preparer=preparer),
            operations,
        )
        insert(Attempt(number=1, released_by=releaser, outcome="succeeded"), map(_attempt, sent))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def insert(what_is_equal: Model, rows: Iterable[dict[str, Any]]) -> None:
    """Insert rows that differ in these columns. `bulk_create` prepares every column of each again."""
    fields = [field for field in what_is_equal._meta.concrete_fields if not isinstance(field, AutoField)]
    prepare = {field.attname: field.get_db_prep_save for field in fields}
    equal = {name: prepare[name](getattr(what_is_equal, name), connection) for name in prepare}
    values = (
        tuple((equal | {name: prepare[name](value, connection) for name, value in row.items()}).values())
        for row in rows
    )
    table = connection.ops.quote_name(what_is_equal._meta.db_table)
    columns = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
        else:
            places = ", ".join(["%s"] * len(fields))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", list(values))  # noqa: S608


def _operation(chance: random.Random, number: int, now: datetime) -> dict[str, Any]:
    status = chance.choice(UNDER_WAY if number < STILL_OPEN else ENDS)
    person, bank = chance.randrange(8_000), chance.choice(BANKS)
    account, amount = f"{person:010d}"[::-1], Decimal(chance.randrange(1, 10**9)).scaleb(-2)
    prepared_at = now - timedelta(minutes=10 * number)
    return {
        "id": uuid.UUID(int=chance.getrandbits(128)),
        "reference": f"W-{verification_code(f'{number * 514_229 % 2**30:015x}').replace('-', '')[6:]}",
        "payload": PAYLOAD
        | {"amount": str(amount), "account_number": account, "account_name": _name(person)},
        "digest": f"{number:064x}",
        "content_key": f"{number:064x}",
        "sentence": f"Withdraw NGN {amount:,.2f} to {_name(person)}, {bank} ••{account[-4:]}",
        "amount": amount,
        "recipient": _name(person),
        "recipient_detail": f"{bank} ••{account[-4:]}",
        "recipient_key": f"bank:044:{account}",
        "recipient_account": account,
        "status": status,
        "prepared_at": prepared_at,
        "expires_at": prepared_at + timedelta(days=3),
        "closed_at": prepared_at + timedelta(hours=1) if status in CLOSED else None,
    }


def _name(person: int) -> str:
    first, last = ("ADA", "KOLA", "NGOZI", "TUNDE", "ZAINAB"), ("OBI", "BELLO", "EZE", "MUSA")
    return f"{first[person % 5]} {last[person % 4]} {person}"


def _attempt(operation: dict[str, Any]) -> dict[str, Any]:
    at = operation["prepared_at"]
    return {
        "operation_id": operation["id"],
        "digest": operation["digest"],
        "started_at": at,
        "deadline_at": at,
        "closed_at": at,
        "provider_transaction_id": f"tx{operation['id'].hex}",
    }


def addresses() -> Iterator[str]:
    """Every list and search that people come to, those that find nothing too."""
    oldest = Operation.objects.order_by("prepared_at")[0]
    yield "/"
    for tab in TABS:
        yield f"/operations/?tab={tab}"
    for filters in (
        "status=failed",
        "currency=USD",
        "kind=conversion",
        "mine=on",
        "text=kola",
        "text=nobody",
    ):
        yield f"/operations/?tab=done&{filters}"
    yield "/operations/?tab=all&text=kola"
    yield "/operations/?tab=done&since=2020-01-01&until=2020-12-31"
    for text in ("kola", "nobody at all", oldest.recipient_account, NOBODYS_ACCOUNT, "W-7Q", "txnone"):
        yield f"/search/ {text}"


def come(client: Client, address: str) -> Any:
    """The page; what follows the path is what is searched for there."""
    path, _, text = address.partition(" ")
    if text:
        return client.post(path, {"q": text}, headers={"Accept-Encoding": "gzip"})
    return client.get(path, headers={"Accept-Encoding": "gzip"})


def plans(person: User) -> Iterator[tuple[str, str]]:
    """The index that each list must read its first page from, and how the database means to read it."""
    of_tab = {
        "waiting": "operation_open",
        "open": "operation_open",
        "done": "operation_newest",
        "all": "operation_newest",
    }
    assert set(of_tab) == set(TABS)
    for tab, index in of_tab.items():
        yield index, first_page(person, TABS[tab][1](person)).explain()
    yield "operation_open", first_page(person, waiting_for(person).operations.alone).explain()
    yield "operation_by_status", first_page(person, Q(status=Status.FAILED)).explain()
    yield "operation_ended", plan_of_standings()
    yield "operation_by_account", first_page(person, Q(recipient_account=NOBODYS_ACCOUNT)).explain()
    newest = selectors.visible_operations(person).filter(status=Status.PENDING)
    yield "operation_by_recipient", selectors.with_first_payment(newest).explain()


def plan_of_standings() -> str:
    """How the database counts the operations by state; it is asked with the very text that it was asked with."""
    with CaptureQueriesContext(connection) as queries:
        status_counts(timezone.now())
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{explain} {queries[0]['sql']}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


def first_page(person: User, within: Q) -> QuerySet[Operation]:
    return selectors.visible_operations(person).filter(within).order_by(*NEWEST_FIRST)[:51]


def test_lists_and_search_use_indexes_and_stay_within_their_limits(
    as_approver: Client, preparer: User, approver: User, warm_caches: None
) -> None:
    seed(preparer, approver)
    Inspection.objects.create(pk=1, at=timezone.now())
    come(as_approver, "/account/")  # once a minute, whatever the page, it is noted that the session is in use
    come(as_approver, "/")  # on a slow machine, seeding takes longer than the warm caches last
    for address in addresses():
        with CaptureQueriesContext(connection) as queries:
            answer = come(as_approver, address)
        assert answer.status_code == 200, address
        assert answer["Content-Encoding"] == "gzip"
        assert (address, len(queries) <= QUERIES_AT_MOST) == (address, True)
        assert (address, len(answer.content) <= HTML_AT_MOST) == (address, True)
    for index, plan in plans(approver):
        assert index in plan
        assert re.search(r"Seq Scan on operations_operation|SCAN operations_operation$", plan, re.M) is None
