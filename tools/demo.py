"""`make demo`: the whole product on this machine, with sample people, money and operations."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from payments_gateway.profile.model import PROFILES, ProfileName
from tools.processes import ROOT, Stack, StackError

UNRECOGNISED_TRANSACTION = """
from decimal import Decimal
from backoffice.core.gateway import gateway
from payments_gateway import WalletTransfer
address = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
gateway().wallets.transfer(
    WalletTransfer(network="TRC20", currency="USDT", address=address, amount=Decimal("35.00"))
)
"""
"""Directly at the provider, not through the back office: its reconciliation must detect it."""

DEPOSITS = """
import requests
from django.conf import settings
for currency, amount in (("USDC", "5000"), ("BTC", "0.25")):
    deposit = {"currency": currency, "amount": amount, "sender": "Cedar & Finch Imports Inc"}
    address = settings.GATEWAY_URL.replace("/v2", "/_sandbox/deposits")
    requests.post(address, json=deposit, timeout=30).raise_for_status()
"""
"""Of the currencies that only wallets hold: a new simulation has none of them."""

_SPECIFICATION = ROOT / "tools" / "demo_profile.toml"

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Run the demo until Ctrl-C."""
    arguments = arguments_of("demo", __doc__ or "").parse_args()
    folder = arguments.folder.resolve()
    stack = Stack(
        folder,
        arguments.port,
        arguments.sandbox_port,
        profile=arguments.profile,
        # Beside the database, to show it; in production the place must be elsewhere.
        extra={
            "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS": f"file://{folder / 'checkpoints.jsonl'}",
            "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS": f"demo:{'D' * 43}=",
            # Crypto goes to approved recipients only, and to a new one after a day: to show both.
            "COUNTERSIGN_ALLOW_LIST": "wallet_transfer",
            "COUNTERSIGN_RECIPIENT_COOLING_HOURS": "24",
            **optional_reads(arguments.profile),
        },
        first_command=UNRECOGNISED_TRANSACTION + DEPOSITS,
    )
    return run_until_stopped(stack, "demo", _welcome)


def run_until_stopped(stack: Stack, name: str, welcome: Callable[[Stack, float], str]) -> int:
    """Start everything, print the welcome, and run until Ctrl-C. Returns the exit status of `make <name>`."""
    for number in _STOP_SIGNALS:
        signal.signal(number, _stop)
    began = time.monotonic()
    print("Starting Countersign …", flush=True)
    try:
        with stack:
            print(welcome(stack, time.monotonic() - began), flush=True)
            return _wait_for_exit(stack)
    except StackError as exc:
        print(f"\nThe {name} did not start. {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nStopped. The data is kept: `make {name}` continues with it, `make clean` deletes it.")
        return 0


def optional_reads(profile: ProfileName) -> dict[str, str]:
    """The settings that enable the optional reads of the provider; the profile `published` has them enabled."""
    return {"COUNTERSIGN_GATEWAY_PROFILE": str(_SPECIFICATION)} if profile == "specification" else {}


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    """Begin to stop. A second signal cannot interrupt this and leave processes behind."""
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def arguments_of(name: str, description: str) -> argparse.ArgumentParser:
    """The arguments with which `make <name>` starts the processes, and the folder of its data."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--sandbox-port", type=int, default=8001)
    parser.add_argument("--profile", choices=PROFILES, default="specification", help="of the provider's API")
    folder = os.environ.get("COUNTERSIGN_DATA_DIR") or ROOT / "var" / name
    parser.add_argument(
        "--folder", type=Path, default=folder, help=f"default: COUNTERSIGN_DATA_DIR, or var/{name}"
    )
    return parser


def _welcome(stack: Stack, seconds: float) -> str:
    return f"""
Countersign is ready ({seconds:.0f} s).  The provider is simulated: no real money moves.

  Open           {stack.web}
  Sign in        The sign-in page lists seven people with their passwords and authenticator codes.
                 Prepare a withdrawal as Tunde Bello, then approve and send it as Amara Okafor.
  One-time code  To send, enter the provider's one-time code (not the authenticator code). It is shown below its
                 field, and with the rest of the simulation at {stack.sandbox}/_sandbox/
  Settings       As Zainab Musa or Kemi Balogun: groups, approval policies and a stricter version that waits, an access
                 review. As Amara Okafor: a withdrawal of NGN 12,500,000 that waits for its second level, and a
                 recipient that looks like another
  Mailbox        {stack.web}/demo/mailbox/ shows the mails that would have been sent
  Data           {stack.folder}
  Logs           {stack.folder / "logs"}

Press Ctrl-C to stop.
"""


def _wait_for_exit(stack: Stack) -> int:
    """Return when a process ends unexpectedly."""
    while True:
        for name, process in stack.processes.items():
            if process.poll() is not None:
                print(f"The {name} process ended unexpectedly:\n{stack.log_tail(name)}", file=sys.stderr)
                return 1
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
