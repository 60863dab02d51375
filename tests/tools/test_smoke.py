"""What `make smoke` and `make demo` are made of, without starting them."""

import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from backoffice.core.gateway import provider_profile
from payments_gateway.profile.model import PROFILES
from tools import smoke
from tools.demo import optional_reads
from tools.processes import WEBHOOK_SECRET, Stack, StackError, free_port

SEEN = {
    "status": "succeeded",
    "debits_at_provider": 1,
    "debited": "123456.78",
    "approvals": 1,
    "audit_entries": 12,
    "csv_rows": 40,
}


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that another program listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


def test_one_debit_of_the_right_amount_with_evidence_passes() -> None:
    assert smoke.is_passed(SEEN)
    assert smoke.is_passed({**SEEN, "debited": "123456.780"})


@pytest.mark.parametrize(
    "difference",
    [
        {"status": "processing"},
        {"status": "succeeded on the page, unknown in the CSV"},
        {"debits_at_provider": 0, "debited": "0"},
        {"debits_at_provider": 0, "debited": "123456.78"},
        {"debits_at_provider": 2, "debited": "246913.56"},
        {"debited": "123456.79"},
        {"approvals": 0},
        {"approvals": 2},
        {"audit_entries": 0},
        {"csv_rows": 0},
    ],
    ids=str,
)
def test_any_other_result_fails(difference: dict[str, Any]) -> None:
    assert not smoke.is_passed({**SEEN, **difference})


@pytest.mark.parametrize(
    ("amounts", "count", "sum_"),
    [
        ([], 0, "0"),
        (["123456.78"], 1, "123456.78"),
        (["123456.780"], 1, "123456.780"),
        (["123456.78", "123456.78"], 2, "246913.56"),
        (["123456.78", "0.01"], 1, "123456.79"),
        (["61728.39", "61728.39"], 0, "123456.78"),
    ],
    ids=str,
)
def test_withdrawals_to_our_account_are_counted_and_summed(amounts: list[str], count: int, sum_: str) -> None:
    ours = [{"accountNumber": smoke.WITHDRAWAL["account_number"], "amount": amount} for amount in amounts]
    others = [{"accountNumber": "0000000000", "amount": "123456.78"}]
    debits = smoke.provider_debits({"withdrawals": [*others, *ours]})
    assert debits == {"debits_at_provider": count, "debited": sum_}


@pytest.mark.parametrize(("cell", "people"), [("", 0), ("Amara Okafor", 1), ("Amara Okafor; Chidi Nwosu", 2)])
def test_an_empty_cell_is_no_approval(cell: str, people: int) -> None:
    assert len(smoke.names(cell)) == people


def test_the_processes_inherit_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERSIGN_ENVIRONMENT", "production")
    monkeypatch.setenv("COUNTERSIGN_GATEWAY_URL", "https://api.service.example/v2")
    stack = Stack(tmp_path, 8000, 8001, extra={"COUNTERSIGN_LOG_LEVEL": "WARNING"})
    own = {name: value for name, value in stack.environment.items() if name.startswith("COUNTERSIGN_")}
    assert own == {
        "COUNTERSIGN_DEMO": "True",
        "COUNTERSIGN_ENV_FILE": "",  # not the one of this folder
        "COUNTERSIGN_DATA_DIR": str(tmp_path),
        "COUNTERSIGN_PUBLIC_URL": "http://127.0.0.1:8000",
        "COUNTERSIGN_EMAIL_URL": f"filemail:///{tmp_path}/mailbox",
        "COUNTERSIGN_GATEWAY_URL": "http://127.0.0.1:8001/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": "http://127.0.0.1:8001/v4",
        "COUNTERSIGN_GATEWAY_PROFILE": "specification",
        "COUNTERSIGN_WEBHOOK_SECRET": WEBHOOK_SECRET,
        "COUNTERSIGN_WEBHOOK_KEYS": str(stack.webhook_keys),
        "COUNTERSIGN_LOG_LEVEL": "WARNING",
    }


@pytest.mark.parametrize("place", [0, 1], ids=["web", "sandbox"])
def test_a_port_in_use_is_reported_with_a_remedy(tmp_path: Path, taken_port: int, place: int) -> None:
    ports = [free_port(), free_port()]
    ports[place] = taken_port
    stack = Stack(tmp_path, ports[0], ports[1])
    with pytest.raises(StackError, match=rf"Port {taken_port} is used .* make demo PORT="), stack:
        pytest.fail("It started on a port that belongs to another program")
    assert stack.processes == {}
    assert [left.name for left in tmp_path.iterdir()] == ["running.lock"]


def test_the_ports_that_are_suggested_instead_are_free(tmp_path: Path, taken_port: int) -> None:
    first, _ = suggested_ports(tmp_path / "first", taken_port)
    with closing(socket.create_server(("127.0.0.1", first))):
        ports = suggested_ports(tmp_path / "second", taken_port)
        assert first not in ports
        for port in ports:
            socket.create_server(("127.0.0.1", port)).close()
    assert len({*ports}) == 2


def suggested_ports(folder: Path, taken_port: int) -> list[int]:
    """The ports that the refusal of a taken one names."""
    with pytest.raises(StackError) as refused, Stack(folder, taken_port, free_port()):
        pytest.fail("It started on a port that belongs to another program")
    return [int(port) for port in re.findall(r"PORT=(\d+)", str(refused.value))]


def test_a_process_that_ends_at_once_is_reported_with_its_last_output(tmp_path: Path) -> None:
    stack = Stack(tmp_path, free_port(), free_port())
    stack.run("web", "-c", "raise SystemExit('no database today')")
    try:
        with pytest.raises(StackError, match=r"web process ended at once.*\n.*no database today"):
            stack.wait_for("web", stack.web)
    finally:
        stack.stop()


def test_a_command_that_fails_is_reported_with_what_it_printed(tmp_path: Path) -> None:
    stack = Stack(tmp_path, free_port(), free_port(), extra={"COUNTERSIGN_ENVIRONMENT": "nowhere"})
    with pytest.raises(
        StackError, match=r"(?s)manage.py check failed:.*COUNTERSIGN_ENVIRONMENT is not known"
    ):
        stack.manage("check")


def test_stopping_ends_every_process_and_is_idempotent(tmp_path: Path) -> None:
    stack = Stack(tmp_path, free_port(), free_port())
    for name in ("one", "two"):
        stack.run(name, "-c", "import threading; threading.Event().wait()")
    processes = list(stack.processes.values())
    stack.stop()
    stack.stop()
    assert all(process.poll() is not None for process in processes)


def test_the_demo_enables_the_optional_lists_in_both_profiles(settings: Settings) -> None:
    lists = {"banks", "rates", "currencies", "minimums", "wallet_config"}
    settings.GATEWAY_PROFILE = optional_reads("specification")["COUNTERSIGN_GATEWAY_PROFILE"]
    enabled = provider_profile()
    assert set(enabled.capabilities) == {*lists, "payment"}
    assert enabled.overridden({"capabilities": []}) == PROFILES["specification"]
    assert optional_reads("published") == {}
    assert lists <= set(PROFILES["published"].capabilities)
