"""The form: what it shows, and what it refuses."""

import pytest
from django.test import Client

from backoffice.accounts.models import User
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
    ("network", "address"), [("ERC20", EVM), ("trc 20", TRON), ("BTC", BITCOIN), ("Lightning", "lnbc1")]
)
def test_addresses_of_every_network_are_accepted(
    as_preparer: Client, provider: StubProvider, network: str, address: str
) -> None:
    assert review(as_preparer, network=network, address=address).status_code == 200


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("network", "", "This field is required."),
        ("network", "TRC20\x00", "Null characters"),
        ("network", "a/b", "letters, digits, spaces, hyphens"),
        ("network", "x" * 17, "at most 16"),
        ("network", "ERC20", "0x and then 40 characters"),
        ("currency", "NGN", "NGN is not one of the available choices"),
        ("amount", "", "Enter an amount."),
        ("amount", "1e2", "digits and at most one point"),
        ("amount", "0.0000001", "USDT has at most 6 decimals."),
        ("amount", "0", "greater than zero"),
        ("address", "", "This field is required."),
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
