"""A round: reads the newest pages until it meets a stretch that is here as it is told."""

from datetime import datetime

from django.db import transaction
from django.db.models.functions import Coalesce

from backoffice.core import clock
from backoffice.core.gateway import gateway
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirror.merging import Merged, merge
from backoffice.ledger.mirrored import Mirror
from payments_gateway import PageReader, TransactionPage, TransactionRecord

PER_PAGE = 100
"""The specification shows no bounds of a page: so many are what we know to be given."""
STRETCH = 200
"""So many records in a row must be here as they are told: the list is not strictly in order."""
PATIENCE = 20.0  # seconds for one page


def read_newest(lease: Lease) -> None:
    """Merge everything that is new at the beginning of the list, and what changed there.

    A round that is broken off leaves its beginning behind, and what it merged is no known stretch for the next one:
    below it may be records that nobody has read. Raises GatewayError, UnfitRecordError, LeaseLostError.
    """
    began, known_before = _begin(lease)
    reader, in_a_row, newest = PageReader(PER_PAGE), 0, None
    while not reader.is_done and in_a_row < STRETCH:
        page = page_at(reader.number, lease)
        newest = newest or page
        merged = merge_held(lease, reader.take(page), known_before)
        in_a_row = _stretch(in_a_row, merged.is_known)
    _end(lease, began, newest)


def page_at(number: int, lease: Lease) -> TransactionPage:
    """One page of the list. Raises GatewayError, and LeaseLostError before anybody is asked."""
    lease.renew()
    return gateway(deadline=PATIENCE).transactions.page(page=number, per_page=PER_PAGE)


def merge_held(lease: Lease, records: list[TransactionRecord], known_before: datetime) -> Merged:
    """Merge, if the lease is held still. Raises LeaseLostError, UnfitRecordError."""
    with transaction.atomic(durable=True):
        lease.prove()
        return merge(records, known_before=known_before)


def _begin(lease: Lease) -> tuple[datetime, datetime]:
    """When this round begins, and before which moment a row must have been here to be known."""
    now = clock.now()
    mine = Mirror.objects.filter(pk=1, lease_holder=lease.holder)
    mine.update(round_begun_at=Coalesce("round_begun_at", now))
    known_before = mine.values_list("round_begun_at", flat=True).first()
    return now, known_before or now


def _end(lease: Lease, began: datetime, newest: TransactionPage | None) -> None:
    told = {"listed": newest.total, "service_time": newest.answered_at} if newest else {}
    Mirror.objects.filter(pk=1, lease_holder=lease.holder).update(as_of=began, round_begun_at=None, **told)


def _stretch(before: int, is_known: list[bool]) -> int:
    """How many known records in a row there are now at the end of what was read."""
    if all(is_known):
        return before + len(is_known)
    return is_known[::-1].index(False)
