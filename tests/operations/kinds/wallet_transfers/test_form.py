"""The form: what it shows, and what it refuses."""

from html import escape
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.ledger import accounts as ledger
from backoffice.operations.kinds.base import GroupedCode
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import approvals
from tests.operations.kinds.wallet_transfers.steps import (
    ADDRESS,
    EVM,
    FILLED_IN,
    KIND,
    TRON,
    of,
    prepared,
    review,
)
from tests.payments_gateway import stub
from tests.payments_gateway.stub import Stub
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

BITCOIN = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"


def test_the_review_shows_the_whole_address_and_its_checks(
    as_preparer: Client, provider: StubProvider
) -> None:
    answer = review(as_preparer)
    html = answer.content.decode()
    assert "<h1>Send USDT 150.250000 on TRC20 to TR7NHq…gjLj6t</h1>" in html
    assert f'data-copy="{TRON}"' in html
    assert "<span>TR7N</span><wbr><span>Hqje</span>" in html
    assert "Checksum valid" in html
    assert "Requires one approver who is not the preparer." in html


@pytest.mark.parametrize(
    ("network", "address"), [("ERC20", EVM), ("TRC20", TRON), ("BTC", BITCOIN), ("Lightning", "lnbc1")]
)
def test_addresses_of_every_network_are_accepted(
    as_preparer: Client,
    provider: StubProvider,
    settings: Settings,
    tmp_path: Path,
    network: str,
    address: str,
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('transfer_networks = ["TRC20", "ERC20", "BTC", "Lightning"]')
    settings.GATEWAY_PROFILE = str(profile)
    assert review(as_preparer, network=network, address=address).status_code == 200


def test_the_networks_are_those_of_the_provider(
    as_preparer: Client, sandbox: SandboxProcess, settings: Settings, tmp_path: Path
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('capabilities = ["wallet_config"]\ntransfer_networks = ["LIGHTNING"]')
    settings.GATEWAY_PROFILE = str(profile)
    assert networks_offered(as_preparer) == ["", "TRC20", "ERC20", "BEP20", "POLYGON", "BTC"]


def test_wallet_types_are_choices_where_the_profile_names_them(
    as_preparer: Client, provider: StubProvider, settings: Settings, tmp_path: Path
) -> None:
    assert wallet_types_offered(as_preparer) == []
    profile = tmp_path / "profile.toml"
    profile.write_text('wallet_types = ["fund", "trade"]')
    settings.GATEWAY_PROFILE = str(profile)
    assert wallet_types_offered(as_preparer) == ["", "fund", "trade"]
    assert review(as_preparer, wallet_type="trade").status_code == 200
    assert review(as_preparer, wallet_type="savings").status_code == 422


def test_without_an_answer_the_networks_are_those_of_the_profile(
    as_preparer: Client, settings: Settings, tmp_path: Path
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('capabilities = ["wallet_config"]\ntransfer_networks = ["TRC20", "LIGHTNING"]')
    settings.GATEWAY_PROFILE, settings.GATEWAY_URL = str(profile), "http://127.0.0.1:9/v2"
    assert networks_offered(as_preparer) == ["", "TRC20", "LIGHTNING"]


WALLETS = stub.answer(
    200,
    {
        "data": [
            {"currency": "USDT", "networks": ["TRC20", "ERC20"]},
            {"currency": "USDC", "networks": ["ERC20"]},
            {"currency": "NGN", "networks": ["ERC20"]},
        ]
    },
)
MINIMUMS = stub.answer(200, {"data": {"USDC": "2.5", "USDT": "1", "GHS": "3"}})


@pytest.fixture
def several_currencies(as_preparer: Client, settings: Settings, tmp_path: Path) -> Client:
    """The provider has wallets of USDT and USDC; its lists are cached."""
    profile = tmp_path / "profile.toml"
    profile.write_text('capabilities = ["wallet_config", "minimums"]')
    settings.GATEWAY_PROFILE = str(profile)
    with Stub(WALLETS, MINIMUMS) as provider:
        settings.GATEWAY_URL = provider.url
        ledger.supported_wallets()
        ledger.minimum_amounts()
    return as_preparer


def test_the_currencies_are_those_of_the_providers_wallets(several_currencies: Client) -> None:
    form = several_currencies.get(ADDRESS).context["form"]
    assert [code for code, _label in form.fields["currency"].choices] == ["USDT", "USDC"]
    assert [name for name, _label in form.fields["network"].choices] == ["", "TRC20", "ERC20"]
    assert (
        form.fields["amount"].help_text
        == "Minimum: USDT\N{NO-BREAK SPACE}1.000000 · USDC\N{NO-BREAK SPACE}2.5"
    )


def test_another_cryptocurrency_is_prepared_as_typed_and_needs_two_approvers(
    several_currencies: Client,
) -> None:
    answer = review(several_currencies, currency="USDC", network="ERC20", address=EVM, amount="0.5")
    html = answer.content.decode()
    assert answer.status_code == 200
    assert "Send USDC 0.5 on ERC20" in html
    assert "Payments in USDC require two approvers who are not the preparer." in html
    for amount in ("0", "0.0000000000000000001"):
        refused = review(several_currencies, currency="USDC", network="ERC20", address=EVM, amount=amount)
        assert "amount" in refused.context["form"].errors


def test_a_network_of_another_currency_is_refused(several_currencies: Client) -> None:
    answer = review(several_currencies, currency="USDC", network="TRC20")
    (error,) = answer.context["form"].errors["network"]
    assert error == "The provider sends USDC only on ERC20. Select one of them."


@pytest.mark.parametrize("network", ["TRON", "trc20", "TRC 20", "<b>"])
def test_another_network_is_refused_at_its_field_and_kept(
    as_preparer: Client, provider: StubProvider, network: str
) -> None:
    answer = review(as_preparer, network=network)
    assert answer.status_code == 422
    message = f"the provider does not support {network}."
    (error,) = answer.context["form"].errors["network"]
    assert message in error
    option = f'<option value="{escape(network)}" selected>{escape(network)} (not available)</option>'
    assert option in answer.content.decode()
    assert not Operation.objects.exists()


def test_a_copy_with_a_network_no_longer_offered_shows_it_with_the_error(
    as_preparer: Client, preparer: User
) -> None:
    operation = prepared(preparer, network="TRON")
    approvals.cancel_operation(operation.pk, actor=preparer)
    html = as_preparer.get(f"{ADDRESS}?copy={operation.pk}").content.decode()
    assert '<option value="TRON" selected>TRON (not available)</option>' in html
    assert "the provider does not support TRON." in html
    assert 'aria-invalid="true" aria-describedby="id_network_helptext id_network_error"' in html


def wallet_types_offered(client: Client) -> list[str]:
    field = client.get(ADDRESS).context["form"].fields["wallet_type"]
    return [value for value, _label in getattr(field, "choices", ())]


def networks_offered(client: Client) -> list[str]:
    form = client.get(ADDRESS).context["form"]
    return [value for value, _label in form.fields["network"].choices]


@pytest.mark.parametrize(("typed", "is_open"), [("", False), ("hot", True), ("x" * 41, True)])
def test_the_wallet_type_is_folded_away_unless_it_is_used(
    as_preparer: Client, provider: StubProvider, typed: str, is_open: bool
) -> None:
    html = review(as_preparer, wallet_type=typed, amount="").content.decode()
    assert ('<details class="fold advanced" open>' in html) == is_open
    assert "<summary>Advanced</summary>" in html


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("network", "", "Select a network."),
        ("network", "ERC20", "0x followed by 40 digits"),
        ("currency", "NGN", "“NGN” is not among them"),
        ("amount", "", "Enter an amount."),
        ("amount", "1e2", "Enter a number such as 5,000.50"),
        ("amount", "0.0000001", "USDT has at most 6 decimals."),
        ("amount", "0", "greater than zero"),
        ("address", "", "Enter a value."),
        ("address", TRON[:-1] + "u", "mistyped"),
        ("address", "0" + TRON[1:], "is not valid in"),
        ("address", TRON[:20] + " " + TRON[20:], "Remove spaces"),
        ("address", EVM, "is not valid in"),
        ("address", "x" * 129, "at most 128"),
        ("wallet_type", "x" * 41, "at most 40"),
        ("memo", "x" * 121, "at most 120"),
        ("memo", "a\x07b", "invisible"),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_kept(
    as_preparer: Client, provider: StubProvider, field: str, typed: str, message: str
) -> None:
    answer = review(as_preparer, **{field: typed})
    assert answer.status_code == 422
    form = answer.context["form"]
    beside = "address" if (field, typed) == ("network", "ERC20") else field
    assert message in " ".join(form.errors[beside])
    kept = {name: form[name].value() for name in FILLED_IN if name != field}
    assert kept == {name: value for name, value in FILLED_IN.items() if name != field}
    assert not Operation.objects.exists()


def test_the_address_is_shown_in_groups_and_copied_exactly() -> None:
    value = dict(KIND.facts(of()))["Recipient address"]
    assert isinstance(value, GroupedCode)
    assert value == TRON
    assert value.groups[0] == "TR7N"
    assert "".join(value.groups) == TRON


def test_prepare_again_prefills_the_form(as_preparer: Client, preparer: User) -> None:
    operation = prepared(preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    form = as_preparer.get(f"{ADDRESS}?copy={operation.pk}").context["form"]
    assert {name: str(form[name].value()) for name in FILLED_IN} == FILLED_IN
