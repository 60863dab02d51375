"""The facets as this process knows them. None is ever taken away, so a row of a facet that is not known tells of new
ones: whoever reads rows looks whether there are as many as it knew."""

from backoffice.ledger.mirrored import Facet

_known: list[Facet] = []


def known_facets() -> list[Facet]:
    """All of them, read once."""
    if not _known:
        _known.extend(Facet.objects.all())
    return _known


def forget() -> None:
    """Read them again when they are next asked for."""
    _known.clear()
