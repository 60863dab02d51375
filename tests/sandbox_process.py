"""The simulated provider as tests use it: a real process on a free port, with a database of its own."""

import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests

from payments_gateway.profile.model import ProfileName

ROOT = Path(__file__).resolve().parent.parent
API_KEY = "sandbox-key-of-the-simulation"
API_USER = "countersign-demo"
ISSUED_CODES = Path(__file__).with_name("issued_codes.toml")
"""A provider profile with codes that the provider issues, which are valid for longer than half a minute."""
_READY = "Sandbox ready at "
_START_SECONDS = 120
_STOP_SECONDS = 60


class SandboxProcess:
    """Start the sandbox on entry, stop it on exit.

    `url` is the v2 base address, `control` the base of the control API; `ledger()` is the oracle: what the
    provider has executed since its seed. By default a withdrawal settles on the first request after it; use
    `options(settle_after=None)` to keep withdrawals `processing` until `settle()`.
    """

    api_key = API_KEY
    api_user = API_USER

    def __init__(
        self,
        *,
        port: int = 0,
        database: Path | None = None,
        transactions: int = 60,
        seed: int = 1,
        settle_after: float = 0,
        profile: ProfileName = "specification",
    ) -> None:
        self.profile: ProfileName = profile
        self._folder = tempfile.TemporaryDirectory(prefix="sandbox-")
        self.database = database or Path(self._folder.name) / "sandbox.sqlite3"
        self._output = Path(self._folder.name) / "output"
        self._arguments = {
            "--port": port,
            "--database": self.database,
            "--transactions": transactions,
            "--seed": seed,
            "--settle-after": settle_after,
            "--profile": profile,
        }
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""
        self._session = requests.Session()

    @property
    def url(self) -> str:
        """The base address of version 2, without a trailing slash."""
        return f"{self.address}/v2"

    @property
    def control(self) -> str:
        """The base address of the control API, without a trailing slash."""
        return f"{self.address}/_sandbox"

    @property
    def headers(self) -> dict[str, str]:
        """Valid credential headers."""
        return {"X-Api-Key": API_KEY, "X-Api-User": API_USER, "X-User-Version": "v2"}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Start the process and wait until it serves."""
        arguments = [str(part) for pair in self._arguments.items() for part in pair]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "payments_gateway.sandbox", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
            )
        self.address = address_of(self.process, self._output)

    def stop(self) -> None:
        """Stop the process and wait for its end; its output stays readable until exit."""
        self._session.close()  # the server would wait a second for a keep-alive connection
        if self.process is not None:
            self.process.terminate()
            self.process.wait(_STOP_SECONDS)
            self.process = None

    def output(self) -> str:
        """Everything the process has written so far."""
        return self._output.read_text()

    def totp(self) -> str:
        """The current TOTP code. The provider accepts a code once, unless `options(token_reuse=True)` is set."""
        return str(self._get("otp")["totp"])

    def authenticator_secret(self) -> str:
        """The secret of the authenticator that makes the TOTP codes, in base32."""
        return str(self._get("otp")["secret"])

    def issued_otp(self) -> str:
        """The issued code (`otpType` otp), valid until it has been used."""
        return str(self._get("otp")["otp"])

    def ledger(self) -> Any:
        """Withdrawals since the seed, their debits, balances, and inconsistencies of the books."""
        return self._get("ledger")

    def balance(self, currency: str) -> Decimal:
        """The merchant's balance at the provider."""
        return Decimal(self.ledger()["balances"][currency])

    def options(self, **changes: object) -> Any:
        """Change options (settle_after, otp_required, token_reuse, fail_next); returns all options."""
        return self._post("options", changes)

    def settle(self, outcome: str | None = None) -> int:
        """Settle every open withdrawal now, to `fullfiled` or `failed` if an outcome is given; returns how
        many.
        """
        return int(self._post("settle", {} if outcome is None else {"outcome": outcome})["settled"])

    def reset(self) -> None:
        """Return to the seeded history, initial options, unused one-time codes, the correct time and no faults."""
        self._post("reset", {})

    def fault(self, operation: str, kind: str, **parameters: object) -> int:
        """Activate a fault and return its id. Kinds and parameters: `payments_gateway/sandbox/faults/`."""
        return int(self._post("faults", {"operation": operation, "kind": kind, **parameters})["id"])

    def faults(self) -> list[Any]:
        """Every active fault, with `hits`, `left` and `passed`."""
        return list(self._get("faults")["faults"])

    def hits(self, fault_id: int) -> int:
        """How many requests this fault has hit."""
        (found,) = [fault for fault in self.faults() if fault["id"] == fault_id]
        return int(found["hits"])

    def clear_faults(self, fault_id: int | None = None) -> None:
        """Remove one fault, or all; delayed requests continue at once."""
        self._delete("faults" if fault_id is None else f"faults/{fault_id}")

    def now(self) -> datetime:
        """The current time of the provider's clock."""
        return datetime.fromisoformat(self._get("clock")["now"])

    def advance(self, seconds: float) -> datetime:
        """Move the provider's clock forward; returns its current time."""
        return datetime.fromisoformat(self._post("clock", {"advance": seconds})["now"])

    def deposit(self, currency: str, amount: str, sender: str = "Adaeze Obi") -> str:
        """Create an incoming transaction from outside; returns its id."""
        body: dict[str, object] = {"currency": currency, "amount": amount, "sender": sender}
        return str(self._post("deposits", body)["transactionId"])

    def kyc(self, completed: bool) -> None:
        """Set whether the merchant has completed KYC."""
        self._post("kyc", {"completed": completed})

    def pay_in(self, reference: str, amount: str | None = None) -> Any:
        """A customer sends crypto to the address of a payment, the full amount by default; returns the
        payment.
        """
        return self._post("payments", {"reference": reference, "amount": amount})

    def deliveries(self) -> list[Any]:
        """The latest webhooks, newest first, each with its attempts."""
        return list(self._get("webhooks")["deliveries"])

    def webhook_fault(self, kind: str, **parameters: object) -> Any:
        """Duplicate, reorder, delay or forge the next deliveries; returns all such faults."""
        return self._post("webhooks/faults", {"kind": kind, **parameters})["faults"]

    def books(self) -> sqlite3.Connection:
        """The sandbox's own database, for tests that must damage it."""
        return sqlite3.connect(self.database, timeout=60)

    def _get(self, path: str) -> Any:
        return self._answer(self._session.get(f"{self.control}/{path}", timeout=30))

    def _post(self, path: str, body: dict[str, object]) -> Any:
        return self._answer(self._session.post(f"{self.control}/{path}", json=body, timeout=30))

    def _delete(self, path: str) -> Any:
        return self._answer(self._session.delete(f"{self.control}/{path}", timeout=30))

    def _answer(self, response: requests.Response) -> Any:
        response.raise_for_status()
        return response.json()


def address_of(process: "subprocess.Popen[bytes]", output: Path) -> str:
    """Wait until a started sandbox reports in its output that it serves, and return its address."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for line in output.read_text().splitlines():
            if line.startswith(_READY):
                return line.removeprefix(_READY)
        time.sleep(0.01)  # between two checks of a condition with a deadline
    raise AssertionError(f"The sandbox did not start:\n{output.read_text()}")
