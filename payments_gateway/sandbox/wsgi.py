"""The WSGI application, made once the books are ready; then the banner is printed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import django
from django.core.handlers.wsgi import WSGIHandler

if TYPE_CHECKING:
    from payments_gateway.sandbox.faults.application import FaultyApplication


def application_at(address: Sequence[Any]) -> "FaultyApplication":
    """Prepare database and options, announce the simulation at this address, and return what serves it."""
    django.setup(set_prefix=False)
    # Models can be imported only after Django was set up.
    from payments_gateway.sandbox import banner, lifecycle, terminal
    from payments_gateway.sandbox.books.settlement import catch_up
    from payments_gateway.sandbox.faults.application import FaultyApplication
    from payments_gateway.sandbox.faults.plan import PLAN
    from payments_gateway.sandbox.webhooks import courier

    simulation = lifecycle.prepare()
    courier.start(before_each_round=catch_up)
    application = FaultyApplication(WSGIHandler(), PLAN)
    terminal.announce(banner.text(simulation, address))
    return application
