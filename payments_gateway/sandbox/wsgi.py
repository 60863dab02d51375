"""The WSGI application, made once the books are ready; then the banner is printed."""

from collections.abc import Sequence
from typing import Any

import django
from django.core.handlers.wsgi import WSGIHandler


def application_at(address: Sequence[Any]) -> WSGIHandler:
    """Prepare database and options, announce the simulation at this address, and return what serves it."""
    django.setup(set_prefix=False)
    # Models can be imported only after Django was set up.
    from payments_gateway.sandbox import banner, console, lifecycle

    simulation = lifecycle.prepare()
    application = WSGIHandler()
    console.announce(banner.text(simulation, address))
    return application
