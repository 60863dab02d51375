"""The console lists accounts to try, as the simulation itself answers about them."""

import pytest

from payments_gateway.sandbox.control.examples import Destination, destinations, outcome_of
from tests.sandbox.conftest import SandboxClient
from tests.sandbox.control.test_console import console


def test_the_console_lists_them_with_their_holders(provider: SandboxClient) -> None:
    page = console(provider).partition("Accounts to try")[2].partition("</table>")[0]
    for one in destinations():
        assert f"<code>{one.account}</code>" in page
        assert one.holder in page
    for outcome in ("does not exist", "fails when it settles", "takes an hour", "succeeds"):
        assert f"<td>{outcome}</td>" in page


@pytest.mark.parametrize(
    "one", [one for one in destinations() if "(" in one.place], ids=lambda one: f"{one.account} {one.place}"
)
def test_the_provider_resolves_the_accounts_as_listed(provider: SandboxClient, one: Destination) -> None:
    body = {"accountNumber": one.account, "bankCode": one.place.rpartition("(")[2].rstrip(")")}
    answer = provider.post("/bank/resolve", body)
    assert (answer.status_code == 200) == bool(one.holder)
    if one.holder:
        assert answer.json()["data"]["accountname"] == one.holder


@pytest.mark.parametrize(
    ("destination", "exists", "outcome"),
    [
        ("0123456789", True, "succeeds"),
        ("0123456788", True, "takes an hour"),
        ("fails.99", True, "fails when it settles"),
        ("nobody.here", False, "does not exist"),
    ],
)
def test_the_outcome_is_that_of_the_simulation(destination: str, exists: bool, outcome: str) -> None:
    assert str(outcome_of(destination, exists=exists)) == outcome
