"""Keeps what the service listed."""

from django.db import transaction
from django.utils import timezone

from backoffice.audit.canonical import storable
from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.integration.models import KnownKey
from backoffice.operations.kinds.listed_keys import expiry_of
from payments_gateway import KeyInfo

LONGEST = 200


def refresh_keys(*, patience: float = PATIENCE_OF_A_PAGE) -> None:
    """Read the list of keys from the service and keep it. Raises GatewayError; then nothing is changed.

    The call is made with no transaction open; a key that the service lists no more is forgotten.
    """
    listed = gateway(deadline=patience).api_keys.list()
    rows = {row.short_hash: row for row in (_known(place, key) for place, key in enumerate(listed))}
    with transaction.atomic():
        KnownKey.objects.bulk_create(
            rows.values(),
            update_conflicts=True,
            unique_fields=["short_hash"],
            update_fields=["position", "name", "expires_at", "ended_at", "as_of"],
        )
        KnownKey.objects.exclude(short_hash__in=rows).delete()


def _known(place: int, key: KeyInfo) -> KnownKey:
    return KnownKey(
        short_hash=_kept(key.short_hash),
        position=place,
        name=_kept(key.name),
        expires_at=expiry_of(key),
        ended_at=key.deleted_at,
        as_of=timezone.now(),
    )


def _kept(text: str) -> str:
    return storable(text)[:LONGEST]
