"""Confirming a key operation whose response was lost."""

import uuid
from typing import Any

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core import credentials
from backoffice.core.gateway import gateway
from backoffice.core.models import GatewayKey
from backoffice.operations.kinds.api_keys.switch import ApiKeySwitchPayload
from backoffice.operations.kinds.base import OutdatedError, Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from tests.operations.kinds.api_keys.steps import (
    CREATE,
    END,
    FULL,
    NEW,
    NEW_HASH,
    OLD_HASH,
    answer,
    listing,
    sent,
)
from tests.operations.kinds.samples import SAMPLES
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("payload", "listed", "ends"),
    [
        (CREATE, listing((OLD_HASH, "old"), (NEW_HASH, "till")), Status.SUCCEEDED),
        (CREATE, listing((OLD_HASH, "till"), (NEW_HASH, "another")), Status.UNKNOWN),
        (FULL, listing((OLD_HASH, "old"), (NEW_HASH, "any")), Status.SUCCEEDED),
        (FULL, listing((OLD_HASH, "old"), (NEW_HASH, "any"), ("77777777", "any")), Status.UNKNOWN),
        (FULL, listing((OLD_HASH, "old")), Status.UNKNOWN),
        (FULL, '"no list"', Status.UNKNOWN),
    ],
)
def test_an_unknown_creation_is_closed_by_an_unambiguous_list(
    provider: StubProvider, administrator: User, approver: User, payload: Payload, listed: str, ends: Status
) -> None:
    answer(provider, {"message": "down"}, status=500, listed=listed)
    operation = sent("api_key_create", payload, administrator, approver)
    assert operation.status == Status.UNKNOWN
    assert confirmation.confirm_operation(operation.pk).status == ends


def test_a_key_created_by_another_operation_does_not_close_this_one(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    both = listing((OLD_HASH, "old"), (NEW_HASH, "any"))
    answer(provider, {"data": {"key": NEW}}, listed=both)
    sent("api_key_create", FULL, administrator, approver)
    answer(provider, {"message": "down"}, status=500, listed=both)
    operation = sent("api_key_create", FULL, administrator, approver, otp="654321")
    assert confirmation.confirm_operation(operation.pk).status == Status.UNKNOWN


@pytest.mark.parametrize(
    ("kind", "listed", "ends"),
    [
        ("api_key_invalidate", listing((OLD_HASH, "old"), (NEW_HASH, "till")), Status.UNKNOWN),
        ("api_key_invalidate", listing((NEW_HASH, "till"), ended=NEW_HASH), Status.SUCCEEDED),
        ("api_key_invalidate", listing((OLD_HASH, "old")), Status.SUCCEEDED),
        ("api_key_delete", listing((NEW_HASH, "till"), ended=NEW_HASH), Status.UNKNOWN),
        ("api_key_delete", listing((OLD_HASH, "old")), Status.SUCCEEDED),
    ],
)
def test_an_unknown_end_of_a_key_is_closed_by_the_list(
    provider: StubProvider, administrator: User, approver: User, kind: str, listed: str, ends: Status
) -> None:
    answer(provider, {"message": "down"}, status=500, listed=listed)
    operation = sent(kind, END, administrator, approver)
    assert operation.status == Status.UNKNOWN
    assert confirmation.confirm_operation(operation.pk).status == ends


def test_a_key_that_is_gone_needs_another_switch(provider: StubProvider) -> None:
    kind: Any = KINDS["api_key_switch"]
    with pytest.raises(OutdatedError, match="not available for the switch"):
        kind.send(None, SAMPLES["api_key_switch"], None)


def test_a_switch_replaces_the_key_that_was_in_use_when_it_was_approved(provider: StubProvider) -> None:
    """Two switches were approved in place of the same key, and the other one was made first."""
    payload, kind = _switch_to_former_key(), KINDS["api_key_switch"]
    other = GatewayKey(name="other", short_hash="77777777")
    other.encrypt("other-key-that-is-in-use")
    credentials.switch_to_key(other)
    with pytest.raises(OutdatedError, match="switched to another key after this was prepared"):
        kind.send(gateway(deadline=5), payload, None)
    assert credentials.key_in_use().pk == other.pk
    credentials.switch_to_environment_key()
    assert kind.send(gateway(deadline=5), payload, None).is_final
    assert credentials.key_in_use().short_hash == NEW_HASH


@pytest.mark.parametrize("kind_name", ["api_key_invalidate", "api_key_delete"])
@pytest.mark.parametrize("was_in_use", [True, False])
def test_a_key_that_countersign_uses_by_now_does_not_end(
    provider: StubProvider, kind_name: str, was_in_use: bool
) -> None:
    """It was approved as one that Countersign does not use."""
    kind, key = KINDS[kind_name], GatewayKey(name="till", short_hash=NEW_HASH)
    key.encrypt(NEW)
    credentials.switch_to_key(key)
    payload = END.model_copy(update={"short_hash": NEW_HASH, "is_in_use": was_in_use})
    answer(provider, {"message": "done"})
    with gateway(deadline=5) as client:
        if was_in_use:
            assert kind.send(client, payload, None).is_final
            return
        with pytest.raises(OutdatedError, match="uses this key since this was prepared"):
            kind.send(client, payload, None)
    assert provider.changes == []


def _switch_to_former_key() -> ApiKeySwitchPayload:
    key = GatewayKey(name="till", short_hash=NEW_HASH, state=GatewayKey.State.FORMER, since=timezone.now())
    key.encrypt(NEW)
    key.save(force_insert=True)
    in_use = credentials.key_in_use()
    return ApiKeySwitchPayload(
        target=f"kept:{key.pk}",
        key_name=key.name,
        short_hash=key.short_hash,
        scope="Unchanged",
        replaced_name=in_use.name,
        replaced_hash=in_use.short_hash,
    )


def test_an_unknown_switch_is_closed_by_the_key_in_use(provider: StubProvider) -> None:
    made_by = uuid.uuid4()
    payload = ApiKeySwitchPayload.model_validate(
        {**SAMPLES["api_key_switch"].model_dump(), "target": f"made:{made_by}"}
    )
    kind: Any = KINDS["api_key_switch"]
    assert not kind.is_done(None, payload)
    key = GatewayKey(name="till", made_by=made_by)
    key.encrypt(NEW)
    credentials.switch_to_key(key)
    assert kind.is_done(None, payload)
