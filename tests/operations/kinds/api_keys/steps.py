"""What the tests of the kinds about API keys do and show."""

import json
import uuid
from typing import Any

from django.test import Client
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.operations.delivery import release, send
from backoffice.operations.kinds.api_keys.create import ApiKeyCreatePayload
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.stub_provider import StubProvider

UNREACHABLE = "http://127.0.0.1:9/v4"

NEW = "key-that-nobody-has-seen-yet-0001"

OLD_HASH, NEW_HASH = "3f2a91bc", "0a1b2c3d"

CREATE = ApiKeyCreatePayload(
    method="named", key_name="till", scope="G", scope_text="Read only (GetOnly)", keys_before=(OLD_HASH,)
)

FULL = ApiKeyCreatePayload(method="full", scope_text="Everything (Master)", keys_before=(OLD_HASH,))

END = SAMPLES["api_key_invalidate"]


def review(client: Client, kind: str, **typed: str) -> Any:
    values = {"submission": str(uuid.uuid4()), **typed, "step": "review"}
    return client.post(f"/operations/prepare/{kind}/", values)


def listing(*keys: tuple[str, str], ended: str | None = None) -> str:
    """The provider's list: short hash and name of each key."""
    rows = [
        {"Apikey": short_hash, "Keyname": name, "Username": "m", "Expirable": False, "Expiration": 0}
        | {"DeletedAt": "2026-11-20T10:00:00Z" if short_hash == ended else None}
        for short_hash, name in keys
    ]
    return json.dumps({"Apikeys": rows})


def answer(provider: StubProvider, body: object, *, status: int = 200, listed: str = "{}") -> None:
    """Answer what changes something like this, and the list of keys like that."""
    provider.answer_post = lambda: (status, json.dumps(body))
    provider.keys = listed


def sent(
    kind: str, payload: Payload, administrator: User, approver: User, *, otp: str = "123456"
) -> Operation:
    """Prepared, approved, released and sent."""
    operation = factories.approve(factories.prepared_of_kind(kind, payload, administrator), approver)
    release.release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=SecretStr(otp) if KINDS[kind].asks_for_otp else None,
    )
    send.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


NAMED = {"method": "named", "key_name": "till", "scope": "G", "expires_in": "90", "expires_unit": "days"}
