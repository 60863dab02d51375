"""The facets as this process knows them. None is ever taken away, so whoever reads rows compares how many there are."""

import time

from backoffice.ledger.mirrored import Facet

KEPT_SECONDS = 30.0
"""A process that reads no rows, like one that makes files, meets new ones that late at most."""

_known: tuple[Facet, ...] = ()
_read_at = 0.0


def known_facets() -> tuple[Facet, ...]:
    """All of them, as read lately."""
    global _known, _read_at
    if not _known or time.monotonic() - _read_at > KEPT_SECONDS:
        _known, _read_at = tuple(Facet.objects.all()), time.monotonic()
    return _known


def forget() -> None:
    """Read them again when they are next asked for."""
    global _known
    _known = ()
