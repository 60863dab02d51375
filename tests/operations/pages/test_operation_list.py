"""The list of operations: what each person finds, and what it costs."""

import csv
import html
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.ledger import accounts
from backoffice.operations.models.monitoring import Inspection
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.operation_list import OperationFilterForm
from backoffice.operations.templatetags.operations import with_breaks
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.ledger.stored_transactions import store, unsaved
from tests.operations.conftest import SignIn
from tests.operations.kinds.samples import SAMPLES
from tests.operations.kinds.wallet_transfers.steps import EVM, of
from tests.operations.pages.page_text import LIST, balance, page, references
from tests.payments_gateway import stub
from tests.payments_gateway.stub import Stub

pytestmark = pytest.mark.django_db


def test_the_list_needs_a_role(client: Client, sign_in: SignIn, outsider: User) -> None:
    assert sign_in(client, outsider).get(LIST).status_code == 403


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ("tab=open", [True, True, False]),
        ("tab=done", [False, False, True]),
        ("tab=open&currency=USD", [False, True, False]),
        ("tab=open&status=pending&kind=withdrawal", [True, True, False]),
        ("tab=open&status=failed", [False, False, False]),
        ("tab=open&text=kola", [False, True, False]),
        ("tab=open&text=••6789", [True, False, False]),
        ("tab=open&mine=on", [True, False, False]),
        ("tab=done&since=2020-01-01&until=2020-12-31", [False, False, False]),
        ("tab=nonsense", [True, True, False]),
    ],
)
def test_filters_narrow_the_list(
    client: Client, sign_in: SignIn, preparer: User, approver: User, filters: str, found: list[bool]
) -> None:
    other = factories.person("Ngozi Eze")
    other.groups.set(preparer.groups.all())
    first = factories.prepared(preparer)
    second = factories.prepared(
        other, currency="USD", account_name="KOLA VENTURES LTD", account_number="1112220031"
    )
    third = factories.prepared(preparer)
    approvals.cancel_operation(third.pk, actor=preparer)
    html = page(sign_in(client, preparer), f"{LIST}?{filters}")
    assert references(html, first, second, third) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("250000", [True, False]),
        ("250,000", [True, False]),
        ("250,000.00", [True, False]),
        ("250 000", [True, False]),
        ("25000", [False, False]),
        ("300.5", [False, True]),
        ("invoice 77", [False, True]),
    ],
)
def test_a_search_finds_amounts_and_memos(
    client: Client, sign_in: SignIn, preparer: User, text: str, found: list[bool]
) -> None:
    first = factories.prepared(preparer)
    second = factories.prepared(preparer, currency="USD", amount=Decimal("300.50"), memo="Invoice 77, March")
    assert (
        references(page(sign_in(client, preparer), f"{LIST}?{urlencode({'text': text})}"), first, second)
        == found
    )


def test_each_filter_is_a_chip_that_removes_it(client: Client, sign_in: SignIn, preparer: User) -> None:
    query = "tab=all&since=2026-03-01&until=2026-03-31&kind=withdrawal&mine=on&text=ada"
    chips = sign_in(client, preparer).get(f"{LIST}?{query}").context["form"].chips
    rest = {"since=2026-03-01", "until=2026-03-31", "kind=withdrawal", "mine=on", "text=ada", "tab=all"}
    assert [(chip.label, chip.value) for chip in chips] == [
        ("Period", "1 Mar 2026 \N{EN DASH} 31 Mar 2026"),
        ("Kind", "Withdrawal"),
        ("Prepared by me", ""),
    ]
    removed = [rest - set(chip.query.removeprefix("?").split("&")) for chip in chips]
    assert removed == [{"since=2026-03-01", "until=2026-03-31"}, {"kind=withdrawal"}, {"mine=on"}]


def test_only_unused_filters_can_be_added(client: Client, sign_in: SignIn, preparer: User) -> None:
    form = sign_in(client, preparer).get(f"{LIST}?status=pending&since=2026-03-01").context["form"]
    assert [field.name for field in form.unused_fields] == ["until", "kind", "currency", "mine"]


@pytest.mark.parametrize(
    ("label", "days"),
    [
        ("Today", "since=2026-03-02&until=2026-03-02"),
        ("Last 7 days", "since=2026-02-24&until=2026-03-02"),
        ("This month", "since=2026-03-01&until=2026-03-02"),
        ("Last month", "since=2026-02-01&until=2026-02-28"),
    ],
)
def test_presets_are_days_in_the_users_time_zone(
    label: str, days: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    with timezone.override("Africa/Lagos"):
        form = OperationFilterForm({"tab": "all", "currency": "NGN", "since": "2020-01-01"})
        assert form.is_valid()
        [preset] = [preset for preset in form.presets if preset.label == label]
        assert QueryDict(preset.query[1:]).dict() == QueryDict(f"{days}&tab=all&currency=NGN").dict()
        chosen = OperationFilterForm(QueryDict(preset.query.removeprefix("?")).dict())
        assert chosen.is_valid()
        assert [preset.label for preset in chosen.presets if preset.is_active] == [label]


def test_filter_days_are_in_the_users_time_zone(client: Client, sign_in: SignIn, preparer: User) -> None:
    operation = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(prepared_at="2026-03-01T23:30:00Z")
    signed_in = sign_in(client, preparer)
    assert references(page(signed_in, f"{LIST}?since=2026-03-02&until=2026-03-02"), operation) == [True]
    User.objects.filter(pk=preparer.pk).update(time_zone="UTC")
    assert references(page(signed_in, f"{LIST}?since=2026-03-02&until=2026-03-02"), operation) == [False]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ("since=2026-03-02&until=2026-03-01", "before the first day"),
        ("until=9999-12-31", "Choose a day from 2000-01-01 to 2099-12-31."),
        ("since=0001-01-01", "Choose a day from 2000-01-01 to 2099-12-31."),
    ],
)
def test_an_invalid_filter_is_refused_and_lists_nothing(
    client: Client, sign_in: SignIn, preparer: User, filters: str, message: str
) -> None:
    operation = factories.prepared(preparer)
    answer = sign_in(client, preparer).get(f"{LIST}?{filters}")
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert operation.reference not in answer.content.decode()


def test_htmx_gets_only_the_rows_and_a_history_restore_gets_the_page(
    client: Client, sign_in: SignIn, preparer: User
) -> None:
    signed_in = sign_in(client, preparer)
    rows = page(signed_in, LIST, HX_Request="true")
    assert rows.lstrip().startswith('<div id="results">')
    whole = page(signed_in, LIST, HX_Request="true", HX_History_Restore_Request="true")
    assert "<!DOCTYPE html>" in whole
    assert 'id="export" hx-swap-oob="true"' in rows
    assert "hx-swap-oob" not in whole


def test_pagination_keeps_the_filters(client: Client, sign_in: SignIn, preparer: User) -> None:
    operations = [factories.prepared(preparer) for _ in range(51)]
    signed_in = sign_in(client, preparer)
    first = signed_in.get(f"{LIST}?currency=NGN")
    shown = first.context["page"]
    assert len(shown.rows) == 50
    assert "currency=NGN&amp;cursor=" in first.content.decode()
    second = signed_in.get(LIST, {"currency": "NGN", "cursor": shown.next_cursor})
    assert [row.pk for row in second.context["page"].rows] == [operations[0].pk]


def test_the_export_link_has_the_filters(client: Client, sign_in: SignIn, preparer: User) -> None:
    factories.prepared(preparer)
    html = page(sign_in(client, preparer), f"{LIST}?currency=NGN&mine=on")
    assert f'{reverse("reports:csv", args=["operations"])}?tab=open&amp;currency=NGN&amp;mine=on"' in html


FILTERS = (
    "",
    "kind=withdrawal",
    "kind=transfer",
    "status=pending",
    "status=cancelled",
    "currency=USD",
    "mine=on",
    "text=kola",
    "text=1112220031",
    "since=2026-03-02",
    "until=2026-03-01",
)


@pytest.mark.parametrize("person", ["preparer", "approver"])
def test_the_export_has_the_listed_rows_in_their_order(
    client: Client,
    sign_in: SignIn,
    preparer: User,
    approver: User,
    request: pytest.FixtureRequest,
    person: str,
) -> None:
    factories.prepared(preparer)
    factories.prepared(
        preparer, currency="USD", account_name="KOLA VENTURES LTD", account_number="1112220031"
    )
    approvals.cancel_operation(factories.prepared(preparer).pk, actor=preparer)
    factories.approved(preparer, approver)
    early = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=early.pk).update(prepared_at="2026-03-01T12:00:00Z")
    signed_in = sign_in(client, request.getfixturevalue(person))
    for case in [f"tab={tab}&{filters}" for tab in ("waiting", "open", "done") for filters in FILTERS]:
        screen = signed_in.get(f"{LIST}?{case}")
        exported = re.search(r'href="([^"]+\.csv[^"]*)"', screen.content.decode())
        on_screen = [row.reference for row in screen.context["page"].rows]
        assert (exported is not None) is bool(on_screen), case
        if exported is not None:
            answer = signed_in.get(html.unescape(exported[1]))
            rows = csv.DictReader(answer.getvalue().decode().splitlines())
            assert [row["Reference"] for row in rows] == on_screen, case


def test_the_export_has_rows_beyond_the_page(client: Client, sign_in: SignIn, preparer: User) -> None:
    for _ in range(51):
        factories.prepared(preparer)
    answer = sign_in(client, preparer).get(reverse("reports:csv", args=["operations"]), {"tab": "open"})
    assert len(list(csv.DictReader(answer.getvalue().decode().splitlines()))) == 51


def test_a_transaction_of_the_provider_finds_its_operation_once(
    client: Client, sign_in: SignIn, preparer: User
) -> None:
    operation = factories.prepared(preparer)
    for number in (1, 2):
        factories.attempt(
            operation,
            number=number,
            outcome="not_sent",
            closed_at=timezone.now(),
            provider_transaction_id=f"TX-{number}",
        )
    signed_in = sign_in(client, preparer)
    for text in ("TX-2", "CHIDINMA"):
        assert [row.pk for row in signed_in.get(LIST, {"text": text}).context["page"].rows] == [operation.pk]


@pytest.fixture
def other_currencies(settings: Settings, tmp_path: Path) -> None:
    """The provider last reported wallets of USDC, and a transaction in GHS, as they are stored here."""
    (tmp_path / "profile.toml").write_text('capabilities = ["wallet_config"]')
    settings.GATEWAY_PROFILE = str(tmp_path / "profile.toml")
    wallets = [{"currency": code, "networks": ["ERC20"]} for code in ("USDT", "USDC")]
    with Stub(stub.answer(200, {"data": wallets})) as provider:
        settings.GATEWAY_URL = provider.url
        accounts.supported_wallets()
    store([unsaved(currency="GHS")])


def test_currencies_are_those_of_balances_wallets_and_transactions(
    client: Client,
    sign_in: SignIn,
    preparer: User,
    other_currencies: None,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    changes = {"currency": "USDC", "network": "ERC20", "address": EVM}
    kept = factories.prepared_of_kind("wallet_transfer", of(**changes), preparer)
    factories.prepared_of_kind("wallet_transfer", SAMPLES["wallet_transfer"], preparer)
    signed_in = sign_in(client, preparer)
    for address in (LIST, "/operations/crypto-transfers/"):
        with django_assert_max_num_queries(QUERIES_AT_MOST[LIST]):
            context = signed_in.get(f"{address}?currency=USDC").context
        codes = [code for code, _label in context["form"].fields["currency"].choices]
        assert codes == ["", "NGN", "USD", "USDT", "GHS", "USDC"]
        assert [row.pk for row in context["page"].rows] == [kept.pk]
        assert signed_in.get(f"{address}?currency=XYZ").status_code == 422
    answer = signed_in.get("/reports/operations.csv?currency=USDC")
    rows = csv.DictReader(answer.getvalue().decode().splitlines())
    assert [row["Reference"] for row in rows] == [kept.reference]
    assert signed_in.get("/reports/operations.csv?currency=XYZ").status_code in {400, 422}


QUERIES_AT_MOST = {"/": 7, LIST: 6, f"{LIST}?tab=done&text=ada&currency=NGN&since=2026-01-01": 6}


@pytest.mark.parametrize("person", ["preparer", "approver", "auditor", "administrator"])
@pytest.mark.parametrize("address", QUERIES_AT_MOST)
def test_a_page_needs_few_queries(
    client: Client,
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    preparer: User,
    person: str,
    address: str,
) -> None:
    Inspection.objects.create(pk=1, at=timezone.now())
    for days in range(3):
        operation = factories.prepared(preparer)
        with lifted(connection):
            Operation.objects.filter(pk=operation.pk).update(
                prepared_at=timezone.now() - timedelta(days=days)
            )
    balance()
    signed_in = sign_in(client, request.getfixturevalue(person))
    page(signed_in, address)  # the flows of thirty days are cached for a moment
    lists_first_steps = (address, person) == ("/", "administrator")
    with django_assert_max_num_queries(QUERIES_AT_MOST[address] + lists_first_steps):
        page(signed_in, address)


@pytest.mark.parametrize("path", [f"{LIST}?tab=done&", "/operations/withdrawals/?"])
def test_a_list_with_an_invalid_filter_does_not_say_that_there_is_nothing(
    client: Client, sign_in: SignIn, preparer: User, path: str
) -> None:
    reader = sign_in(client, preparer)
    assert 'class="empty"' in page(reader, path)
    refused = reader.get(f"{path}since=yesterday")
    assert refused.status_code == 422
    assert "Enter the day as year" in refused.content.decode()
    assert 'class="empty"' not in refused.content.decode()


def test_a_name_is_found_with_any_white_space(client: Client, sign_in: SignIn, preparer: User) -> None:
    """As it is copied from a document."""
    operation = factories.prepared(preparer)
    pasted = urlencode({"tab": "open", "text": "  \t ".join(operation.recipient.split())})
    assert operation.reference in page(sign_in(client, preparer), f"{LIST}?{pasted}")


def test_an_address_in_a_title_is_broken_after_its_slashes(
    client: Client, sign_in: SignIn, administrator: User
) -> None:
    operation = factories.prepared_of_kind("callback_url", SAMPLES["callback_url"], administrator)
    broken = "https://pay.example.com/<wbr>"
    for path in (f"{LIST}?tab=open", operation.get_absolute_url()):
        assert broken in page(sign_in(client, administrator), path)
    assert with_breaks("https://<b>/x") == "https://&lt;b&gt;/<wbr>x"
    assert with_breaks("and/or") == "and/or"
