"""The facets by their four words, and by their ids."""

from collections.abc import Iterable

from backoffice.ledger.mirror.rows import WORDS, Words
from backoffice.ledger.mirrored import Facet


def facet_ids(wanted: Iterable[Words]) -> dict[Words, int]:
    """The id of each of these facets; those that are new are made. In a transaction of the sync's own.

    Read anew each time, some hundreds of rows: what a process remembered could have been rolled back.
    """
    missing = set(wanted) - set(known := _known())
    if not missing:
        return known
    Facet.objects.bulk_create(
        [Facet(**dict(zip(WORDS, words, strict=True))) for words in sorted(missing)], ignore_conflicts=True
    )
    return _known()


def _known() -> dict[Words, int]:
    return {
        (facet.currency, facet.type, facet.status, facet.direction): facet.pk for facet in Facet.objects.all()
    }
