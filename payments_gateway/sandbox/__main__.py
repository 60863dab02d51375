"""The command line of the simulation: python -m payments_gateway.sandbox --port 8001."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from payments_gateway.sandbox.errors import PortTakenError
from payments_gateway.sandbox.server import Server, bound_socket


def main(arguments: Sequence[str]) -> int:
    """Serve until told to stop; 1 when the port is taken."""
    parser = argparse.ArgumentParser(
        prog="python -m payments_gateway.sandbox",
        description="Simulates the Business Payments API on a local port. It moves nothing.",
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        listener = bound_socket(options.host, options.port)
    except PortTakenError as exc:
        sys.stderr.write(f"{exc}. Stop what is using it, or choose another --port.\n")
        return 1
    os.environ.update(_environment(options))
    address = listener.getsockname()
    Server(listener, lambda: _application(address)).run()
    return 0


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the simulation, with their defaults; `manage.py sandbox` takes the same."""
    parser.add_argument("--port", type=int, default=8001, help="0 takes any free port (default: 8001)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--database", default="var/sandbox.sqlite3", help="database file, made when missing")
    parser.add_argument("--seed", type=int, default=1, help="which history a new database is filled with")
    parser.add_argument("--transactions", type=_count, default=6_000, help="how long that history is")
    parser.add_argument(
        "--settle-after", type=_seconds, default=8.0, help="seconds a withdrawal stays processing"
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 3:
        raise argparse.ArgumentTypeError("must be at least 3: one opening deposit for each currency")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 31_536_000:
        raise argparse.ArgumentTypeError("must be between 0 and a year")
    return seconds


def _environment(options: argparse.Namespace) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "payments_gateway.sandbox.settings",
        "SANDBOX_DATABASE": os.path.abspath(options.database),
        "SANDBOX_SEED": str(options.seed),
        "SANDBOX_TRANSACTIONS": str(options.transactions),
        "SANDBOX_SETTLE_AFTER": str(options.settle_after),
    }


def _application(address: Sequence[Any]) -> Any:
    # Imported here, in the worker: Django must find the settings in the environment, and the parent stays small.
    from payments_gateway.sandbox.wsgi import application_at

    return application_at(address)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
