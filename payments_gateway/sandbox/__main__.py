"""Command line of the sandbox: python -m payments_gateway.sandbox --port 8001, or manage.py sandbox --port 8001.

The docstring of the package `payments_gateway.sandbox` describes what it serves.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from payments_gateway.sandbox.server import CannotListenError, add_options, listening_socket, serve


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or Ctrl-C. Returns 1 when the address is not available."""
    parser = argparse.ArgumentParser(
        prog="python -m payments_gateway.sandbox",
        description="Simulates the Business Payments API on a local port. No real money moves.",
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        listener = listening_socket(options.host, options.port)
    except CannotListenError as exc:
        sys.stderr.write(f"{exc}. Stop what is using it, or choose another --port.\n")
        return 1
    os.environ.update(_environment(options))
    address = listener.getsockname()
    serve(listener, lambda: _application(address))
    return 0


def _environment(options: argparse.Namespace) -> dict[str, str]:
    return {
        "DJANGO_SETTINGS_MODULE": "payments_gateway.sandbox.settings",
        "SANDBOX_HOST": options.host,
        "SANDBOX_DATABASE": os.path.abspath(options.database),
        "SANDBOX_PROFILE": options.profile,
        "SANDBOX_SEED": str(options.seed),
        "SANDBOX_TRANSACTIONS": str(options.transactions),
        "SANDBOX_SETTLE_AFTER": str(options.settle_after),
    }


def _application(address: Sequence[Any]) -> Any:
    """Prepare database and options, print the banner with this address, and return the WSGI application."""
    # Imported here, in the worker: Django needs the settings in the environment, and the parent process stays small.
    import django
    from django.core.handlers.wsgi import WSGIHandler

    django.setup(set_prefix=False)
    # Models can be imported only after django.setup().
    from payments_gateway.sandbox import lifecycle, otp
    from payments_gateway.sandbox.books.settlement import settle_if_due
    from payments_gateway.sandbox.faults.middleware import FaultMiddleware
    from payments_gateway.sandbox.faults.registry import FAULTS
    from payments_gateway.sandbox.webhooks import delivery

    state = lifecycle.prepare()
    delivery.start_delivery_thread(before_each_round=settle_if_due)
    application = FaultMiddleware(WSGIHandler(), FAULTS)
    otp.print_now(lifecycle.startup_banner(state, address))
    return application


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
