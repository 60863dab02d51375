"""The process: starting, stopping, the port, the database file, and the command of manage.py."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import requests

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.server import add_options
from tests.sandbox.conftest import ACCOUNT, exact
from tests.sandbox_process import ROOT, SandboxProcess, address_of


def test_the_banner_shows_that_it_is_a_simulation_and_the_credentials(process: SandboxProcess) -> None:
    banner = process.output()
    for text in (
        "SIMULATION",
        "no real money moves",
        process.url,
        f"{process.address}/v4",
        process.api_key,
        process.api_user,
        "/_sandbox/",
    ):
        assert text in banner


def test_a_port_in_use_is_reported_with_exit_code_1(process: SandboxProcess, tmp_path: Path) -> None:
    port = process.address.rpartition(":")[2]
    database = tmp_path / "sandbox.sqlite3"
    second = subprocess.run(
        [sys.executable, "-m", "payments_gateway.sandbox", "--port", port, "--database", str(database)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert second.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use." in second.stderr
    assert "Traceback" not in second.stderr
    assert not database.exists()


@pytest.mark.parametrize(
    "arguments",
    [["--port", "70000"], ["--transactions", "2"], ["--settle-after", "-1"], ["--settle-after", "nan"]],
)
def test_an_invalid_argument_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_the_sandbox_listens_on_loopback_only(process: SandboxProcess) -> None:
    assert process.process is not None
    connections = psutil.Process(process.process.pid).net_connections()
    assert {each.laddr.ip for each in connections if each.status == "LISTEN"} == {"127.0.0.1"}


def test_the_process_stays_small() -> None:
    with SandboxProcess() as process:  # the one of the run has grown with what other tests sent to it
        for _ in range(20):
            assert requests.get(f"{process.url}/transaction", headers=process.headers, timeout=30).ok
            process.reset()
        assert process.process is not None
        parent = psutil.Process(process.process.pid)
        # What both processes share, such as the libraries' code, is not counted twice.
        own = sum(each.memory_full_info().uss for each in (parent, *children(process)))
    assert own < 100 * 1024 * 1024


def test_the_management_command_starts_the_sandbox_without_the_application(tmp_path: Path) -> None:
    output = tmp_path / "output"
    arguments = ["--port", "0", "--database", str(tmp_path / "sandbox.sqlite3"), "--transactions", "60"]
    environment = {
        **os.environ,
        "COUNTERSIGN_SECRET_KEY": "canary",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "sandbox", *arguments],
            cwd=tmp_path,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    try:
        started = address_of(process, output)
        assert requests.get(f"{started}/_sandbox/otp", timeout=30).status_code == 200
        seen = psutil.Process(process.pid)
        assert seen.cmdline()[1:3] == ["-m", "payments_gateway.sandbox"]
        assert "COUNTERSIGN_SECRET_KEY" not in seen.environ()
        assert "DJANGO_SETTINGS_MODULE" not in seen.environ()
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_a_restart_keeps_all_data_and_settles_due_transactions(
    process: SandboxProcess, tmp_path: Path
) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with SandboxProcess(database=database, settle_after=3600) as first:
        reset_on_one_day(first, process)
        assert records(first) == records(process)  # another database of the same seed
        assert secret(first) != secret(process)
        body = {**ACCOUNT, "currency": "USD", "amount": "10", "otpType": "totp", "token": first.totp()}
        url = f"{first.url}/balance/withdraw"
        assert requests.post(url, json=body, headers=first.headers, timeout=30).status_code == 200
        before, kept = first.ledger(), secret(first)
        workers = children(first)
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    with SandboxProcess(database=database, settle_after=0, seed=6) as second:
        after = second.ledger()
        assert secret(second) == kept
    assert before["withdrawals"][0]["status"] == "processing"
    assert after["withdrawals"] == [{**before["withdrawals"][0], "status": "fullfiled"}]
    assert after["balances"] == before["balances"]


def test_a_database_of_an_earlier_release_gets_the_accounts_of_new_currencies(tmp_path: Path) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with SandboxProcess(database=database) as first:
        before = first.ledger()["balances"]
        with first.books() as books:
            books.execute("DELETE FROM sandbox_account WHERE currency IN ('USDC', 'BTC')")
    with SandboxProcess(database=database) as second:
        second.deposit("BTC", "0.5")
        assert second.ledger()["balances"] == {**before, "BTC": "0.50000000"}


def reset_on_one_day(*processes: SandboxProcess) -> None:
    """The history of a seed ends today, so processes that are reset on two days have different ones."""
    day = None
    while day != (day := clock.last_midnight()):
        for process in processes:
            process.reset()


def records(process: SandboxProcess) -> object:
    return exact(requests.get(f"{process.url}/transaction?limit=500", headers=process.headers, timeout=30))


def secret(process: SandboxProcess) -> object:
    return requests.get(f"{process.control}/otp", timeout=30).json()["secret"]


def children(process: SandboxProcess) -> list[psutil.Process]:
    assert process.process is not None
    return psutil.Process(process.process.pid).children(recursive=True)
