"""The page of each kind: its operations, totals by currency and status, filters, CSV and "New …" button."""

import csv
import gzip
from dataclasses import astuple
from decimal import Decimal

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.conftest import SignIn
from tests.operations.kinds.samples import SAMPLES
from tests.operations.pages.page_text import page

pytestmark = pytest.mark.django_db
PAGE = "/operations/withdrawals/"
PAGES = {kind.page.slug: (kind, kind.page) for kind in KINDS.values() if kind.page}


def test_every_kind_that_reaches_the_provider_by_a_form_of_its_own_has_a_page() -> None:
    assert list(PAGES) == [
        "conversions",
        "withdrawals",
        "transfers",
        "crypto-transfers",
        "off-ramp-payments",
        "batches",
        "bank-account-openings",
    ]


def test_pages_are_one_click_from_the_list(client: Client, sign_in: SignIn, preparer: User) -> None:
    html = page(sign_in(client, preparer), "/operations/")
    for slug in PAGES:
        assert f'href="/operations/{slug}/"' in html
    assert client.get("/operations/lotteries/").status_code == 404


@pytest.mark.parametrize("slug", PAGES)
def test_a_page_lists_one_kind_and_offers_a_new_one_to_those_who_may(
    client: Client, sign_in: SignIn, preparer: User, auditor: User, slug: str
) -> None:
    kind, kind_page = PAGES[slug]
    person = _person_for(kind.permission, preparer)
    own = factories.prepared_of_kind(kind.name, SAMPLES[kind.name], person)
    other = (
        factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer)
        if kind.name != "transfer"
        else None
    )
    html = page(sign_in(client, person), f"/operations/{slug}/")
    assert kind.page is not None
    assert own.reference in html
    assert other is None or other.reference not in html
    assert f'href="/operations/prepare/{kind.name}/">{kind_page.button}</a>' in html
    assert f"/prepare/{kind.name}/" not in page(sign_in(Client(), auditor), f"/operations/{slug}/")


def _person_for(permission: str, preparer: User) -> User:
    return preparer if preparer.has_perm(permission) else factories.person("Zainab Musa", Role.ADMINISTRATOR)


def test_totals_are_by_currency_and_status_and_follow_the_filters(
    client: Client, sign_in: SignIn, preparer: User
) -> None:
    for amount in ("1000000000000.01", "0.02"):
        factories.prepared(preparer, amount=Decimal(amount))
    factories.prepared(preparer, currency="USD", amount=Decimal("5.50"))
    approvals.cancel_operation(factories.prepared(preparer, amount=Decimal(7)).pk, actor=preparer)
    signed_in = sign_in(client, preparer)

    def totals(query: str) -> list[tuple[object, ...]]:
        return [astuple(row) for row in signed_in.get(f"{PAGE}?{query}").context["totals"]]

    pending = ("NGN", "pending", 2, Decimal("1000000000000.03"))
    cancelled, dollars = ("NGN", "cancelled", 1, Decimal(7)), ("USD", "pending", 1, Decimal("5.5"))
    assert totals("") == [pending, cancelled, dollars]
    assert "<caption>Totals by currency and status, without fees</caption>" in page(signed_in, PAGE)
    assert totals("status=pending&currency=NGN") == [pending]
    assert "1,000,000,000,000.03" in page(signed_in, PAGE)


def test_the_export_and_a_saved_view_have_the_kind_and_the_filters(
    client: Client, sign_in: SignIn, preparer: User
) -> None:
    kept = factories.prepared(preparer)
    factories.prepared(preparer, currency="USD")
    factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer)
    signed_in = sign_in(client, preparer)
    html = page(signed_in, f"{PAGE}?currency=NGN")
    assert 'href="/reports/operations.csv?kind=withdrawal&amp;currency=NGN"' in html
    assert 'href="/operations/views/?kind=withdrawal&amp;currency=NGN"' in html
    answer = signed_in.get("/reports/operations.csv?kind=withdrawal&currency=NGN")
    rows = csv.DictReader(answer.getvalue().decode().splitlines())
    assert [row["Reference"] for row in rows] == [kept.reference]


def test_the_kind_of_a_page_cannot_be_changed(client: Client, sign_in: SignIn, preparer: User) -> None:
    transfer = factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer)
    assert transfer.reference not in page(sign_in(client, preparer), f"{PAGE}?kind=transfer&tab=all")


def test_a_full_page_takes_few_queries_and_bytes(
    client: Client, sign_in: SignIn, preparer: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(51):
        factories.prepared(preparer, amount=Decimal(number + 1))
    signed_in = sign_in(client, preparer)
    with django_assert_max_num_queries(6):
        answer = signed_in.get(PAGE)
    assert len(answer.context["page"].rows) == 50
    assert len(gzip.compress(answer.content)) <= 14 * 1024
