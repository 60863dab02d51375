"""The requests about API keys, exactly as the provider gets them."""

import json

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.models import GatewayKey
from backoffice.operations.kinds.base import Payload
from backoffice.operations.states import Status
from tests.operations.kinds.api_keys.steps import CREATE, END, FULL, NEW, NEW_HASH, answer, sent
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("payload", "path", "body"),
    [
        (CREATE, "/v4/user/api-key", {"keyname": "till", "scope": "G", "otp": "123456"}),
        (
            CREATE.model_copy(update={"expires_in": 90, "expires_unit": "days"}),
            "/v4/user/api-key",
            {"keyname": "till", "scope": "G", "expirationInDays": 90, "otp": "123456"},
        ),
        (
            CREATE.model_copy(update={"expires_in": 6, "expires_unit": "months"}),
            "/v4/user/api-key",
            {"keyname": "till", "scope": "G", "expirationInMonths": 6, "otp": "123456"},
        ),
        (FULL, "/v2/auth/api-key", {"otpType": "totp", "token": "123456"}),
    ],
)
def test_the_request_for_a_new_key_has_exactly_this_body(
    provider: StubProvider,
    administrator: User,
    approver: User,
    payload: Payload,
    path: str,
    body: dict[str, object],
) -> None:
    answer(provider, {"data": {"apikey": NEW}})
    sent("api_key_create", payload, administrator, approver)
    assert provider.changes == [f"POST {path}"]
    assert json.loads(provider.posts[0]) == body


def test_a_key_is_invalidated_by_its_short_hash(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    answer(provider, {"message": "done"})
    operation = sent("api_key_invalidate", END, administrator, approver)
    assert provider.changes == ["POST /v4/user/api-key/invalidate"]
    assert json.loads(provider.posts[0]) == {"apikey": NEW_HASH}
    assert operation.status == Status.SUCCEEDED


def test_a_stored_key_is_invalidated_by_its_value(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    kept = GatewayKey(name="till", short_hash=NEW_HASH, state="former", since=timezone.now())
    kept.encrypt(NEW)
    kept.save()
    answer(provider, {"message": "done"})
    known = END.model_copy(update={"is_known_here": True})
    sent("api_key_invalidate", known, administrator, approver)
    assert json.loads(provider.posts[0]) == {"apikey": NEW}


def test_a_key_no_longer_stored_is_not_invalidated_by_another_value(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    known = END.model_copy(update={"is_known_here": True})
    operation = sent("api_key_invalidate", known, administrator, approver)
    assert (operation.status, provider.changes) == (Status.APPROVED, [])
    assert [one["code"] for one in operation.attempts.get().responses] == ["outdated"]


def test_a_key_is_deleted_by_its_short_hash(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    answer(provider, {"message": "done"})
    assert sent("api_key_delete", END, administrator, approver).status == Status.SUCCEEDED
    assert provider.changes == [f"DELETE /v4/user/api-key?apikeyHash={NEW_HASH}"]
