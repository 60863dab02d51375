"""Build the WSGI application once the database is ready, and print the start-up banner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import django
from django.core.handlers.wsgi import WSGIHandler

if TYPE_CHECKING:
    from payments_gateway.sandbox.faults.middleware import FaultMiddleware


def application_at(address: Sequence[Any]) -> "FaultMiddleware":
    """Prepare database and options, print the banner with this address, and return the application."""
    django.setup(set_prefix=False)
    # Models can be imported only after django.setup().
    from payments_gateway.sandbox import lifecycle, otp
    from payments_gateway.sandbox.books.settlement import settle_if_due
    from payments_gateway.sandbox.faults.middleware import FaultMiddleware
    from payments_gateway.sandbox.faults.registry import FAULTS
    from payments_gateway.sandbox.webhooks import delivery

    simulation = lifecycle.prepare()
    delivery.start_courier(before_each_round=settle_if_due)
    application = FaultMiddleware(WSGIHandler(), FAULTS)
    otp.print_now(lifecycle.startup_banner(simulation, address))
    return application
