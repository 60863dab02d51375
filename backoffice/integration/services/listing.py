"""Keeps what the service listed."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from backoffice.audit.canonical import storable
from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.integration.models import KnownKey
from backoffice.ledger.turns import take_turn
from backoffice.operations.kinds.api_key_create import ApiKeyCreatePayload, told_by
from backoffice.operations.kinds.listed_keys import MADE_BY, expiry_of, scopes_made_here
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services import fill_in_result
from backoffice.operations.states import Status
from payments_gateway import GatewayError, KeyInfo

LONGEST = 200
LISTED_EVERY = timedelta(hours=1)
TRY_AGAIN_AFTER = timedelta(minutes=10)


def keep_keys() -> int:
    """List the keys if the last list is an hour old, so that pages can warn of those that end; how many were listed.

    May be called at any time and by several processes: one of them asks, and where the service gives no list, the last
    known one stays until the next try.
    """
    fresh = KnownKey.objects.filter(as_of__gt=timezone.now() - LISTED_EVERY)
    if fresh.exists() or not take_turn("keys", pause=TRY_AGAIN_AFTER):
        return 0
    try:
        refresh_keys()
    except GatewayError:
        return 0  # the gateway has logged it
    return KnownKey.objects.count()


def refresh_keys(*, patience: float = PATIENCE_OF_A_PAGE) -> None:
    """Read the list of keys from the service and keep it. Raises GatewayError; then nothing is changed.

    The call is made with no transaction open; a key that the service lists no more is forgotten.
    """
    listed = gateway(deadline=patience).api_keys.list()
    _fill_in(listed)
    made, lost = scopes_made_here(), _names_of_lost_keys()
    found = [_known(place, key, made, lost) for place, key in enumerate(listed)]
    rows = {row.short_hash: row for row in found}
    with transaction.atomic():
        KnownKey.objects.bulk_create(
            rows.values(),
            update_conflicts=True,
            unique_fields=["short_hash"],
            update_fields=["position", "name", "expires_at", "ended_at", "as_of", "scope", "is_lost"],
        )
        KnownKey.objects.exclude(short_hash__in=rows).delete()


def _fill_in(listed: list[KeyInfo]) -> None:
    """Tell the operations that made a key, and did not see it in the list then, how the list names it."""
    gaps = Attempt.objects.filter(operation__kind=MADE_BY, result__short_hash="").select_related("operation")
    for attempt in gaps:
        payload = ApiKeyCreatePayload.model_validate(attempt.operation.payload)
        if told := told_by(payload, listed):
            fill_in_result(attempt.pk, told)


def _known(place: int, key: KeyInfo, made: dict[str, str], lost: set[str]) -> KnownKey:
    return KnownKey(
        short_hash=_kept(key.short_hash),
        position=place,
        name=_kept(key.name),
        expires_at=expiry_of(key),
        ended_at=key.deleted_at,
        as_of=timezone.now(),
        scope=made.get(key.short_hash, ""),
        is_lost=key.name in lost and key.short_hash not in made,
    )


def _kept(text: str) -> str:
    return storable(text)[:LONGEST]


def _names_of_lost_keys() -> set[str]:
    """Names of keys that were made although no answer came back: nobody has them."""
    made = Operation.objects.filter(kind=MADE_BY, status=Status.SUCCEEDED).exclude(counterparty="")
    lost = made.exclude(attempts__result__isnull=False)
    return set(lost.values_list("counterparty", flat=True))
