"""The reports of the reconciliation: the same bytes by every way and on both engines."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.lifecycle.incidents import acknowledge_incident
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.reports.definitions.catalogue import REPORTS, reports_for
from backoffice.reports.report import Column, ComputedReport, ExportRequest, StoredReport
from backoffice.reports.schedules.services import people_who_may_read
from tests.operations.reconciliation.steps import listed, sent
from tests.reports.definitions.test_golden import GOLDEN, by_its_texts, by_the_database, export_request

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own
BEGINNING = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def _as_exported(value: object) -> object:
    """A day as a text: no other report that this program makes has one."""
    return value.isoformat() if type(value) is date else value


def by_values(one: ExportRequest) -> bytes:
    """The same rows made by this program, cell by cell."""
    values = [column.expression for column in one.columns]
    members: dict[str, Any] = {
        name: getattr(one.report, name) for name in ("name", "title", "about", "permissions", "form")
    }

    def rows(user: User, form: Any) -> Iterator[list[object]]:
        assert isinstance(one.report, StoredReport)
        found = one.report.query(user, form).order_by(*one.report.order)
        return ([_as_exported(value) for value in row] for row in found.values_list(*values))

    columns = tuple(
        Column(column.name, column.heading, itemgetter(place)) for place, column in enumerate(one.columns)
    )
    report: ComputedReport[Any, Any] = ComputedReport(rows=rows, columns=columns, **members)
    return by_the_database(replace(one, report=report, columns=columns))


WAYS = (by_the_database, by_its_texts, by_values)


@pytest.fixture
def reconciled(preparer: User, approver: User) -> None:
    """One of each result, at times that are always the same and never at the same one: no order is left to chance."""
    with clock.use_clock(lambda: BEGINNING):
        attempts = [
            sent(preparer, f"T-{minute}", started_at=began, closed_at=began)
            for minute, began in ((n, BEGINNING + timedelta(minutes=n)) for n in (1, 2, 3))
        ]
        later = BEGINNING + timedelta(hours=1)
        listed("T-1", occurred_at=attempts[0].started_at)
        listed(
            "T-2",
            occurred_at=later - timedelta(minutes=1),
            amount=Decimal("250000.000000000000000001"),
            fee=None,
        )
        movement = listed(
            "=X-1", occurred_at=later, currency="USDT", amount=Decimal("0.000001"), fee=Decimal("-0.5")
        )
        Attempt.objects.filter(pk=attempts[2].pk).update(fee=None)
        reconcile()
        acknowledge_incident(
            Incident.objects.get(transaction=movement).pk, actor=approver, note="@our shop\nasked"
        )


def without_references(content: bytes) -> bytes:
    """References are drawn at random."""
    for attempt in Attempt.objects.select_related("operation"):
        content = content.replace(
            attempt.operation.reference.encode(), f"W-{attempt.provider_transaction_id}".encode()
        )
    return content


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["reconciliation", "reconciliation-by-day"])
def test_the_reconciliation_report_gives_the_stored_bytes(
    reconciled: None, auditor: User, way: Callable[[ExportRequest], bytes], name: str
) -> None:
    content = without_references(way(export_request(REPORTS[name], auditor)))
    golden = GOLDEN / f"{name.replace('-', '_')}.csv"
    assert content == golden.read_bytes()


@pytest.mark.parametrize(
    ("rights", "may"),
    [
        ({"ledger.view_transaction"}, False),
        ({"operations.view_operation"}, False),
        ({"operations.view_operation", "ledger.view_transaction"}, True),
    ],
)
@pytest.mark.parametrize("name", ["reconciliation", "reconciliation-by-day"])
def test_the_reconciliation_report_needs_the_permission_of_the_page(
    client: Client,
    sign_in: Callable[[Client, User], Client],
    may_only: Callable[..., User],
    outsider: User,
    name: str,
    rights: set[str],
    may: bool,
) -> None:
    sign_in(client, may_only(outsider, *rights))
    answers = {client.get(address).status_code for address in (f"/reports/{name}.csv", "/reconciliation/")}
    assert answers == {200 if may else 403}
    assert (REPORTS[name] in reports_for(outsider)) == may
    assert (outsider in people_who_may_read(REPORTS[name])) == may
