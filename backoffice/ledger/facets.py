"""The facets as this process knows them. None is ever taken away, so whoever reads rows compares how many there are."""

from backoffice.ledger.mirrored import Facet

_known: tuple[Facet, ...] = ()


def known_facets() -> tuple[Facet, ...]:
    """All of them, read once."""
    global _known
    _known = _known or tuple(Facet.objects.all())
    return _known


def forget() -> None:
    """Read them again when they are next asked for."""
    global _known
    _known = ()
