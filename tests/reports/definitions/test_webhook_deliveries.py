"""Webhook deliveries as a file: the same bytes on both engines, narrowed as asked."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.webhooks.models import Delivery
from tests.reports.definitions.test_golden import by_its_texts, by_the_database, export_request
from tests.reports.download import Download

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own
GOLDEN = Path(__file__).with_name("golden") / "webhook_deliveries.csv"
FIRST = datetime(2026, 11, 20, 10, 42, 7, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _deliveries() -> None:
    deliveries = [
        ("valid", "", "Transaction updated", "T-1", ""),
        ("valid", "", "Payment updated", "", "=INV-77"),
        ("invalid", "", 'say "yes", twice', "T-1", ""),
        ("malformed", "it is not a JSON object", "", "", ""),
        ("valid", "", "Transaction updated", "T-1", ""),  # an older state than that of the first
    ]
    for number, (verdict, error, event, transaction_id, reference) in enumerate(deliveries):
        at = FIRST + timedelta(hours=8 * number)
        Delivery.objects.create(
            identity=f"{number:064x}",
            digest=f"{number:064x}",
            received_at=at,
            last_at=at + timedelta(minutes=number),
            received_count=number + 1,
            verdict=verdict,
            error=error,
            event=event,
            transaction_id=transaction_id,
            reference=reference,
            key="ab" * 32 if verdict == "valid" else "",
            valid_at=at if verdict == "valid" else None,
            checked_at=at if verdict == "valid" else None,
            event_at=FIRST - timedelta(hours=number) if transaction_id else None,
            response_status=200 if verdict == "valid" else 400,
            response_ms=number or None,
            body=b"{}",
        )


def test_the_deliveries_report_gives_the_stored_bytes_in_every_renderer(auditor: User) -> None:
    one = export_request(REPORTS["webhook-deliveries"], auditor, "Africa/Lagos")
    assert by_the_database(one) == GOLDEN.read_bytes()
    assert by_its_texts(one) == by_the_database(one)


def test_the_deliveries_report_is_filtered(
    client: Client,
    auditor: User,
    sign_in: Callable[[Client, User], Client],
    download: Callable[..., Download],
) -> None:
    sign_in(client, auditor)

    def found(**filters: str) -> list[str]:
        return [row["verdict"] for row in download("webhook-deliveries", **filters).rows]

    assert found() == ["valid", "malformed", "invalid", "valid", "valid"]
    assert found(verdict="valid", event="payment UPDATED") == ["valid"]
    assert found(verdict="unsigned") == []
    assert found(subject="T-1") == ["valid", "invalid", "valid"]
    assert found(subject="=INV-77") == ["valid"]
    assert found(since="2026-11-21") == ["valid", "malformed", "invalid"]
    assert found(until="2026-11-20") == ["valid", "valid"]
