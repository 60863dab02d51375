"""The console lists accounts to try, with the outcomes that the simulation gives them."""

import re

import pytest

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.control.test_console import console

ROW = re.compile(r"<tr><td[^>]*><code>(.*?)</code></td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>")


@pytest.fixture
def rows(provider: SandboxClient) -> list[tuple[str, ...]]:
    """Account, username or address; bank or network; holder; and the outcome of a payment."""
    table = console(provider).partition("Accounts to try")[2].partition("</table>")[0]
    return [row.groups() for row in ROW.finditer(table)]


def test_the_provider_resolves_the_accounts_as_listed(
    provider: SandboxClient, rows: list[tuple[str, ...]]
) -> None:
    accounts = [row for row in rows if "(" in row[1]]
    assert len(accounts) == 10
    for account, bank, holder, outcome in accounts:
        body = {"accountNumber": account, "bankCode": bank.rpartition("(")[2].rstrip(")")}
        answer = provider.post("/bank/resolve", body)
        assert (answer.status_code == 200) == bool(holder) == (outcome != "does not exist")
        if holder:
            assert answer.json()["data"]["accountname"] == holder


@pytest.mark.parametrize(
    ("destination", "outcome"),
    [
        ("0123456789", "succeeds"),
        ("0123456788", "takes an hour"),
        ("0123456799", "fails when it settles"),
        ("0123450000", "does not exist"),
        ("fails.99", "fails when it settles"),
        ("nobody.here", "does not exist"),
    ],
)
def test_each_outcome_is_among_the_examples(
    rows: list[tuple[str, ...]], destination: str, outcome: str
) -> None:
    assert {row[3] for row in rows if row[0] == destination} == {outcome}
