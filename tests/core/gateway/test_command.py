"""manage.py gateway: the provider is checked over real HTTP, through the command."""

import re
import time
from collections.abc import Callable
from email.utils import formatdate
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from backoffice.core import credentials
from backoffice.core.management.commands.gateway import WIDTH
from backoffice.core.models import GatewayKey
from payments_gateway.operations import OPERATIONS, CallEffect
from payments_gateway.profile.model import PROFILES
from tests.payments_gateway import stub
from tests.payments_gateway.situations import BROKEN, UNREADABLE, closed_port
from tests.payments_gateway.stub import Behaviour, Stub
from tests.sandbox_process import API_KEY, SandboxProcess
from tools.processes import run_python

pytestmark = pytest.mark.django_db(transaction=True)
CANARY = "canary-key-7f3a"
READS = [operation.name for operation in OPERATIONS if operation.effect is CallEffect.READS]


class Ran(NamedTuple):
    """What a command wrote, and how it ended."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Ran]


@pytest.fixture
def run(settings: Settings, tmp_path: Path) -> Run:
    """Run the command against an address."""

    def run(url: str, *arguments: str, profile: str = "", named: str = "", key: str = API_KEY) -> Ran:
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.toml"
        file.write_text(profile)
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = url, url.replace("/v2", "/v4")
        settings.GATEWAY_PROFILE, settings.GATEWAY_API_KEY = named or str(file), key
        output = StringIO()
        try:
            call_command("gateway", *arguments, stdout=output)
        except CommandError as exc:
            return Ran(exc.returncode, output.getvalue(), str(exc))
        return Ran(0, output.getvalue(), "")

    return run


def check_against(run: Run, *behaviours: Behaviour) -> Ran:
    with Stub(*behaviours) as provider:
        return run(provider.url, "check", key=CANARY)


def row(done: Ran, operation: str) -> str:
    """What the table says of an operation, in one line."""
    lines = done.stdout.splitlines()
    start, *_ = [number for number, line in enumerate(lines) if line.startswith(f"{operation} ")]
    parts = [lines[start]]
    for line in lines[start + 1 :]:
        if not line.startswith(" "):
            break
        parts.append(line.strip())
    return re.sub(r" {2,}", "  ", " ".join(parts))


def test_every_read_of_a_conforming_provider_passes(run: Run, sandbox: SandboxProcess) -> None:
    done = run(sandbox.url, "check", "--account-number", "0123456789", "--bank-code", "044")
    assert (done.returncode, done.stderr) == (0, "")
    for name in READS:
        assert re.fullmatch(rf"{name}  answered, HTTP 200  \d+ ms  none", row(done, name))
    assert f"Clock of {sandbox.url}: correct." in done.stdout
    assert f"{len(READS)} answered. Addresses and credentials work." in done.stdout
    assert sandbox.api_key not in done.stdout


RESOLVED = ("--account-number", "0123456789", "--bank-code", "044")
ALL_LISTS = 'capabilities = ["banks", "rates", "currencies", "minimums", "wallet_config"]'
FITS = "WHERE PROFILES DIFFER"


def fits(done: Ran) -> dict[str, str]:
    """What the second table says of each operation where the profiles differ."""
    lines = done.stdout.split(FITS)[1].split("\n\n")[0].splitlines()[1:]
    pairs = [(name, found) for name, found in (re.split(" {2,}", line, maxsplit=1) for line in lines)]
    return dict(pairs)


def test_the_check_names_the_profile_that_the_provider_fits(
    run: Run, sandbox_process: SandboxProcess, published_process: SandboxProcess
) -> None:
    published_process.reset()
    done = run(published_process.url, "check", *RESOLVED, profile='profile = "published"')
    assert (done.returncode, done.stderr) == (0, "")
    assert fits(done) == dict.fromkeys(
        (
            *("balances.list", "banks.resolve", "accounts.list", "api_keys.list", "api_keys.scopes"),
            *("extras.banks", "extras.rates", "extras.currencies", "extras.minimums", "extras.wallet_config"),
            "all of these",
        ),
        "published",
    ) | {"extras.banks": "specification, published", "extras.rates": "specification, published"}
    done = run(sandbox_process.url, "check", *RESOLVED, profile=ALL_LISTS)
    found = fits(done)
    assert found["all of these"] == found["accounts.list"] == found["api_keys.list"] == "specification"
    assert found["balances.list"] == "specification, published"  # whose totals may be there


SEEN_IN_READS = {
    "key_list_path",
    "key_scopes_path",
    "accounts_by_currency",
    "capabilities",
    "extra_credentials",
}


def test_the_check_names_the_differences_that_only_writes_show(
    run: Run, published_process: SandboxProcess
) -> None:
    published_process.reset()
    done = run(published_process.url, "check", named="published")
    unchecked = done.stdout.split("NOT CHECKED")[1].split("\n\n")[0].splitlines()[1:]
    rows = {
        field: value for _calls, field, value in (re.split(" {2,}", line, maxsplit=2) for line in unchecked)
    }
    specification, published = (dict(profile) for profile in PROFILES.values())
    differ = {name for name in published if published[name] != specification[name]}
    assert set(rows) == differ - SEEN_IN_READS
    assert rows["service_username_member"] == "coinprofileUsername"
    assert rows["account_currencies"] == "NGN, KES"


def test_the_check_finds_the_published_provider_under_the_wrong_profile(
    run: Run, published_process: SandboxProcess
) -> None:
    published_process.reset()
    done = run(published_process.url, "check", *RESOLVED, profile=ALL_LISTS)
    assert done.returncode == 0
    assert "rejected, HTTP 404" in row(done, "api_keys.list")
    assert "answers at /user/apikeys" in row(done, "api_keys.list")
    found = fits(done)
    assert found["api_keys.list"] == found["banks.resolve"] == found["all of these"] == "published"


@pytest.mark.parametrize(("named", "other"), [("specification", "published"), ("published", "specification")])
def test_a_provider_that_fits_another_profile_fails_the_check(
    named: str,
    other: str,
    run: Run,
    sandbox_process: SandboxProcess,
    published_process: SandboxProcess,
) -> None:
    provider = published_process if other == "published" else sandbox_process
    provider.reset()
    done = run(provider.url, "check", *RESOLVED, named=named)
    assert done.returncode == 1
    assert done.stderr == (
        f"The provider fits the profile {other}, not {named}. Set COUNTERSIGN_GATEWAY_PROFILE={other}."
    )


def test_an_answer_of_neither_profile_is_said_to_fit_none(run: Run) -> None:
    with Stub(stub.answer(200, {"data": {"balances": "none", "accounts": 7}})) as provider:
        done = run(provider.url, "check")
    assert "none of them" in fits(done)["balances.list"]
    assert "no profile alone" in done.stdout


def test_account_resolution_is_skipped_unless_an_account_is_given(
    run: Run, sandbox_process: SandboxProcess
) -> None:
    done = run(sandbox_process.url, "check")
    assert done.returncode == 0
    assert row(done, "banks.resolve") == "banks.resolve  not called  needs an account number and a bank code"


def test_an_incomplete_account_is_refused(run: Run, sandbox_process: SandboxProcess) -> None:
    done = run(sandbox_process.url, "check", "--bank-code", "044")
    assert (done.returncode, done.stdout) == (1, "")
    assert "belong together. Nothing was requested." in done.stderr


def test_enabled_optional_reads_are_checked(run: Run, sandbox_process: SandboxProcess) -> None:
    done = run(sandbox_process.url, "check", profile='capabilities = ["banks", "rates", "payment"]')
    assert done.returncode == 0
    assert "answered, HTTP 200" in row(done, "extras.banks")
    assert "answered, HTTP 200" in row(done, "extras.rates")
    assert "extras.payment" not in done.stdout


def test_an_unreadable_optional_read_is_reported(run: Run) -> None:
    with Stub(stub.answer(200, {"data": [{"Code": "044"}]})) as provider:
        done = run(provider.url, "check", profile='capabilities = ["banks"]')
    assert "not usable, HTTP 200" in row(done, "extras.banks")
    assert "cannot be read" in row(done, "extras.banks")


def test_an_address_without_any_answer_fails_the_check(run: Run) -> None:
    done = check_against(run, stub.answer(200, {}))
    assert done.returncode == 1
    assert "gave no usable response" in done.stderr
    assert "work" not in done.stdout
    for name in READS:
        assert name == "banks.resolve" or "not usable, HTTP 200" in row(done, name)


def test_unreadable_answers_are_reported_and_the_other_checks_continue(run: Run) -> None:
    done = check_against(run, stub.answer(200, {"data": {"callbackUrl": "", "accounts": []}}))
    assert done.returncode == 0
    line = row(done, "balances.list")
    assert "not usable, HTTP 200" in line
    assert "cannot be read (none of balances, balance is present)" in line
    assert "answered, HTTP 200" in row(done, "callbacks.url")
    assert re.search(
        r" \d not usable, .*Addresses and credentials work\. Some responses are unusable", done.stdout
    )


def test_only_get_requests_are_sent(run: Run) -> None:
    with Stub(stub.answer(500, b"<html>")) as provider:
        done = run(provider.url, "check")
    assert done.returncode == 1
    assert {request.method for request in provider.requests} == {"GET"}
    assert not [request for request in provider.requests if request.body]
    assert len(provider.requests) == len(READS) - 1


def test_a_refused_key_is_a_configuration_error(run: Run, sandbox_process: SandboxProcess) -> None:
    done = run(sandbox_process.url, "check", key=CANARY)
    assert done.returncode == 1
    assert "rejected, HTTP 401" in row(done, "balances.list")
    assert f"{sandbox_process.url} does not accept our credentials: X-Api-Key is not valid" in done.stderr
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", [b"<html>", {"success": False, "message": f"no entry for {CANARY}"}])
def test_401_and_403_are_credential_errors_whatever_their_body(run: Run, status: int, body: object) -> None:
    done = check_against(run, stub.answer(status, body))
    assert done.returncode == 1
    assert "does not accept our credentials" in done.stderr
    assert FITS not in done.stdout  # the refusal says nothing about the profile
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:{port}/v2", "https://no-such-host.invalid/v2"])
def test_an_unreachable_address_is_a_configuration_error(run: Run, address: str) -> None:
    with closed_port() as port:
        url = address.format(port=port)
        done = run(url, "check", key=CANARY)
    assert done.returncode == 1
    assert f"{url} cannot be reached: The provider could not be reached" in done.stderr
    assert row(done, "wallets.get") == "wallets.get  not called  the address cannot be reached"


def test_an_address_without_tls_fails_the_check(run: Run) -> None:
    with Stub(stub.reset_after_accept) as provider:
        done = run(provider.url.replace("http:", "https:"), "check")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr


def test_an_address_that_answers_404_fails_the_check(run: Run) -> None:
    done = check_against(run, stub.answer(404, b"<html>nothing here"))
    assert done.returncode == 1
    assert "returned HTTP 404 for every request: the address is probably wrong." in done.stderr


@pytest.mark.parametrize("body", [UNREADABLE[name] for name in ("empty", "html", "truncated", "deep", "NaN")])
def test_an_address_with_only_unreadable_answers_fails_the_check(run: Run, body: bytes) -> None:
    done = check_against(run, stub.answer(200, body))
    assert done.returncode == 1
    assert done.stderr.count("gave no usable response: address and credentials could not be confirmed.") == 2
    assert "work" not in done.stdout
    assert "failed, HTTP 200" in row(done, "balances.list")
    assert "cannot be read" in row(done, "balances.list")


@pytest.mark.parametrize("name", ["reset after request", "not http", "broken chunks"])
def test_a_connection_that_breaks_is_reported(run: Run, name: str) -> None:
    done = check_against(run, BROKEN[name])
    assert (done.returncode, "gave no usable response" in done.stderr) == (1, True)
    assert "did not arrive completely" in row(done, "balances.list")


def test_unexpected_fields_in_an_answer_are_reported(run: Run) -> None:
    record = {"transactionId": "T-1", "amount": "5", "status": "on hold", "note": CANARY}
    page = {"data": [record], "total": 1, "perPage": 20, "page": "1", "pages": 1}
    done = check_against(run, stub.answer(201, {"success": True, "message": CANARY, "data": page}))
    line = row(done, "transactions.page")
    assert "answered, HTTP 201" in line
    for remark in (
        "data.data[].amount is text, not a number",
        "data.data[] has unknown note",
        "data.page is text, not",
        "data.data[] has no currency, version",
        "status 'on hold' is not in the profile",
    ):
        assert remark in line, remark
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize(("seconds", "words"), [(3600, "ahead of"), (-3600, "behind")])
def test_clock_skew_is_reported(run: Run, seconds: int, words: str) -> None:
    def behave(peer: stub.Peer) -> bool:
        date = formatdate(time.time() + seconds, usegmt=True)
        return stub.answer(200, {"data": {}}, (f"Date: {date}",))(peer)

    done = check_against(run, behave)
    (measured,) = [int(number) for number in re.findall(rf"/v2: (\d+) s {words} ours", done.stdout)]
    assert abs(measured - 3600) <= 10


def test_the_printed_operations_are_those_of_the_specification(run: Run) -> None:
    done = run("http://127.0.0.1:9/v2", "operations", profile='key_list_path = "/user/apikeys"')
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [operation.name for operation in OPERATIONS]
    assert max(map(len, lines)) <= WIDTH
    cells = {line.split()[0]: re.split(r" {2,}", line) for line in lines}
    assert cells["balances.withdraw"][1:] == [
        *("POST", "/balance/withdraw", "v2", "moves money", "one-time code", "withdrawal")
    ]
    assert cells["api_keys.list"][1:] == ["GET", "/user/apikeys", "v4", "reads"]


def test_enabled_optional_reads_are_printed(run: Run) -> None:
    done = run("http://127.0.0.1:9/v2", "operations", profile='capabilities = ["payment"]')
    assert re.search(r"^extras.payment +GET +/payment/\{paymentId\} +v2 +reads$", done.stdout, re.MULTILINE)
    assert "extras.banks" not in done.stdout


def test_the_command_requires_an_action(run: Run) -> None:
    assert "required: action" in run("http://127.0.0.1:9/v2").stderr


def test_the_command_needs_no_database_and_prints_no_secret(tmp_path: Path) -> None:
    """As on a machine on which nothing but the configuration is there."""
    with Stub(stub.answer(401, {"message": f"no entry for {CANARY}"})) as provider:
        own = {
            "COUNTERSIGN_DATA_DIR": str(tmp_path),
            "COUNTERSIGN_DATABASE_URL": "postgres://nobody:nothing@127.0.0.1:9/none",
            "COUNTERSIGN_GATEWAY_URL": provider.url,
            "COUNTERSIGN_GATEWAY_URL_V4": provider.url.replace("/v2", "/v4"),
            "COUNTERSIGN_GATEWAY_API_KEY": CANARY,
        }
        done = run_python("manage.py", "gateway", "check", own=own, timeout=120)
    assert done.returncode == 1
    assert "does not accept our credentials: no entry for [hidden]" in done.stderr
    assert "Uses the API key of the environment." in done.stdout
    assert "Whether another one is in use is not known: the database cannot be read." in done.stdout
    assert CANARY not in done.stdout + done.stderr


def test_the_command_uses_the_key_in_use_after_a_switch(run: Run, sandbox_process: SandboxProcess) -> None:
    own = run(sandbox_process.url, "check")
    assert "Uses the API key in use: Key configured at installation." in own.stdout
    key = GatewayKey(name="till", short_hash="0a1b2c3d")
    key.encrypt(API_KEY)
    credentials.switch_to_key(key)
    done = run(sandbox_process.url, "check", key=CANARY)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Uses the API key in use: till." in done.stdout
    assert API_KEY not in done.stdout
    assert CANARY not in done.stdout
