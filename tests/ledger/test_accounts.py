"""The banks that a withdrawal may go to: the provider's list where it has one, ours where it has none or fails."""

import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.core.gateway import PAGE_OPENING_TIMEOUT
from backoffice.core.models import LeaseRow
from backoffice.ledger import accounts as ledger
from backoffice.operations.kinds.withdrawal import WithdrawalForm
from payments_gateway import BANKS
from tests.cached_reads import Elapse
from tests.payments_gateway import stub
from tests.payments_gateway.stub import Behaviour, Peer, Stub
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db  # where the key in use is kept

LISTED = stub.answer(200, {"data": [{"Code": "044", "Name": "Access"}, {"Code": "999", "Name": "New Bank"}]})
OTHER = stub.answer(200, {"data": [{"Code": "998", "Name": "Newer Bank"}]})
THEIRS = {"044": "Access", "999": "New Bank"}


@pytest.fixture
def banks_enabled(settings: Settings, tmp_path: Path) -> Settings:
    """The deployment says that the provider has a list of banks."""
    file = tmp_path / "profile.toml"
    file.write_text('capabilities = ["banks"]\n')
    settings.GATEWAY_PROFILE = str(file)
    return settings


@pytest.fixture
def elapse(monkeypatch: pytest.MonkeyPatch) -> Elapse:
    return Elapse(monkeypatch)


def test_the_bank_list_is_not_requested_when_disabled(settings: Settings) -> None:
    with Stub(LISTED) as provider:
        settings.GATEWAY_URL = provider.url
        assert ledger.banks() == BANKS
    assert provider.connections == 0


def test_the_bank_list_is_requested_once_when_enabled(banks_enabled: Settings) -> None:
    with Stub(LISTED) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        assert [ledger.banks(), ledger.banks()] == [THEIRS, THEIRS]
    assert [request.target for request in provider.requests] == ["/v2/bank/supported"]


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ("057", "057"),
        ("57", "057"),  # a spreadsheet removes the zero
        ("zenith bank", "057"),
        ("Zenith", "Zenith"),  # a part of a name can be of several
        ("0", "0"),
        ("", ""),
        ("999999", "999999"),
    ],
)
def test_a_bank_is_named_by_its_code_or_its_whole_name(typed: str, code: str) -> None:
    assert ledger.bank_code_of(typed) == code


def test_the_withdrawal_form_offers_the_providers_banks(banks_enabled: Settings) -> None:
    with Stub(LISTED) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        offered = str(WithdrawalForm()["bank_code"])
    assert '<option value="999">New Bank</option>' in offered
    assert "Zenith Bank" not in offered


def test_the_withdrawal_form_falls_back_to_the_built_in_banks(banks_enabled: Settings) -> None:
    banks_enabled.GATEWAY_URL = "http://127.0.0.1:9/v2"
    assert '<option value="057">Zenith Bank</option>' in str(WithdrawalForm()["bank_code"])


def test_the_bank_list_is_requested_again_after_an_hour(banks_enabled: Settings, elapse: Elapse) -> None:
    with Stub(LISTED, OTHER) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        ledger.banks()
        elapse(timedelta(hours=1))
        assert ledger.banks() == {"998": "Newer Bank"}


@pytest.mark.parametrize(
    "failure",
    [
        stub.answer(500, b"<html>"),
        stub.answer(404, {"success": False, "message": "no such path"}),
        stub.answer(401, {"success": False, "message": "X-Api-Key is not valid"}),
        stub.answer(200, {"data": "nonsense"}),
        stub.answer(200, {"data": []}),
        stub.close_after_request,
    ],
    ids=["500", "404", "401", "nonsense", "empty", "closed"],
)
def test_a_failed_read_falls_back_to_the_last_or_built_in_list(
    banks_enabled: Settings, elapse: Elapse, failure: Behaviour
) -> None:
    with Stub(failure) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        assert ledger.banks() == BANKS
    with Stub(LISTED, failure) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        elapse(timedelta(hours=1))
        ledger.banks()
        elapse(timedelta(hours=1))
        assert ledger.banks() == THEIRS
        assert len(provider.requests) > 1


def test_a_slow_provider_delays_one_page_only(banks_enabled: Settings) -> None:
    with Stub(stub.silent) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        assert [ledger.banks(), ledger.banks()] == [BANKS, BANKS]
        assert provider.connections == 1


def test_an_unreachable_provider_is_not_requested_by_every_page(banks_enabled: Settings) -> None:
    banks_enabled.GATEWAY_URL = "http://127.0.0.1:9/v2"
    assert ledger.banks() == BANKS
    with Stub(LISTED) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        assert ledger.banks() == BANKS
        assert provider.connections == 0


@pytest.mark.django_db(transaction=True)
def test_the_sweeper_reads_every_list_before_a_form_has_to(
    published_process: SandboxProcess, settings: Settings
) -> None:
    settings.GATEWAY_URL, settings.GATEWAY_PROFILE = published_process.url, "published"
    assert [ledger.refresh_lists_due(), ledger.refresh_lists_due()] == [4, 0]
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    supported = ledger.cached_supported_currencies()
    assert supported is not None
    assert supported.value
    assert set(ledger.cached_minimum_amounts()) >= {"NGN", "USD", "USDT"}
    assert ledger.cached_supported_wallets()["USDT"]
    assert ledger.banks()["044"] == "Access Bank"


def test_the_sweeper_keeps_the_last_list_while_the_provider_is_away(banks_enabled: Settings) -> None:
    with Stub(LISTED, stub.answer(500, b"<html>")) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        assert ledger.refresh_lists_due() == 1
        LeaseRow.objects.update(held_until=timezone.now())
        assert ledger.refresh_lists_due() == 0
        assert len(provider.requests) > 1
    assert ledger.banks() == THEIRS


def test_the_sweeper_waits_longer_for_a_list_than_a_page_does(banks_enabled: Settings) -> None:
    def slow(peer: Peer) -> bool:
        time.sleep(2 * PAGE_OPENING_TIMEOUT)  # the provider's own delay, not a wait for something to happen
        return LISTED(peer)

    with Stub(slow) as provider:
        banks_enabled.GATEWAY_URL = provider.url
        assert ledger.refresh_lists_due() == 1


def test_lists_that_the_provider_does_not_have_are_not_requested(settings: Settings) -> None:
    with Stub(LISTED) as provider:
        settings.GATEWAY_URL = provider.url
        assert ledger.refresh_lists_due() == 0
    assert provider.connections == 0
