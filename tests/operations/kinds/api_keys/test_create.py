"""What each answer to a creation proves, and that the one chance to keep the new key is not missed."""

import json

import pytest
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.api_keys.key_list import refresh_keys
from backoffice.api_keys.models import KnownKey
from backoffice.operations.delivery.record import record_result, send_and_classify
from backoffice.operations.kinds.base import Payload, SendReceipt
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.secret import Secret
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from payments_gateway.resources.api_keys import ApiKeys
from tests.operations.kinds.api_keys.steps import CREATE, FULL, NEW, NEW_HASH, OLD_HASH, answer, listing, sent
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

ENDS: list[tuple[int, object, Status, Outcome]] = [
    (400, {"message": "Invalid OTP token"}, Status.APPROVED, Outcome.OTP_REJECTED),
    (400, {"message": "invalid API scope"}, Status.FAILED, Outcome.REJECTED),
    (401, {"message": "X-Api-Key is not valid"}, Status.FAILED, Outcome.REJECTED),
    (500, {"message": "internal error"}, Status.UNKNOWN, Outcome.OPEN),
    (200, {"data": {}}, Status.UNKNOWN, Outcome.OPEN),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("payload", [CREATE, FULL], ids=["named", "full"])
def test_each_response_to_a_creation_leads_to_the_status_it_proves(
    provider: StubProvider,
    administrator: User,
    approver: User,
    payload: Payload,
    end: tuple[int, object, Status, Outcome],
) -> None:
    status, body, ends, outcome = end
    answer(provider, body, status=status)
    assert sent("api_key_create", payload, administrator, approver).status == ends
    assert Attempt.objects.get().outcome == outcome
    assert not Secret.objects.exists()


@pytest.mark.parametrize(
    ("payload", "listed", "short_hash"),
    [
        (CREATE, listing((OLD_HASH, "old"), (NEW_HASH, "till")), NEW_HASH),
        (FULL, listing((OLD_HASH, "old"), (NEW_HASH, "created today")), NEW_HASH),
        (FULL, listing((OLD_HASH, "old"), (NEW_HASH, "one"), ("77777777", "two")), ""),
        (CREATE, '"no list"', ""),
    ],
)
def test_the_created_key_is_encrypted_and_shown_by_its_short_hash(
    provider: StubProvider,
    administrator: User,
    approver: User,
    payload: Payload,
    listed: str,
    short_hash: str,
) -> None:
    answer(provider, {"data": {"apikey": NEW}}, listed=listed)
    operation = sent("api_key_create", payload, administrator, approver)
    assert operation.status == Status.SUCCEEDED
    result = Attempt.objects.get().result or {}
    assert set(result) == {"name", "short_hash", "scope", "expires"}
    assert result["short_hash"] == short_hash
    secret = Secret.objects.get()
    assert (secret.viewer, secret.decrypted()) == (approver, NEW)
    assert NEW not in json.dumps([operation.payload, result])


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("payload", [CREATE, FULL], ids=["named", "full"])
def test_the_key_is_stored_if_the_worker_dies_after_the_response(
    provider: StubProvider,
    administrator: User,
    approver: User,
    payload: Payload,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer(provider, {"data": {"apikey": NEW}}, listed=listing((OLD_HASH, "old"), (NEW_HASH, "till")))

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ApiKeys, "list", die)
        with pytest.raises(Killed):
            sent("api_key_create", payload, administrator, approver)
    assert Operation.objects.get().status == Status.SUCCEEDED
    assert Secret.objects.get().decrypted() == NEW
    assert (Attempt.objects.get().result or {})["short_hash"] == ""
    refresh_keys()
    result = Attempt.objects.get().result or {}
    assert (result["name"], result["short_hash"]) == ("till", NEW_HASH)
    assert KnownKey.objects.get(short_hash=NEW_HASH).scope == payload.scope_text  # type: ignore[attr-defined]


def test_a_response_recorded_twice_stores_one_secret(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    answer(provider, {"data": {"apikey": NEW}}, listed="{}")
    sent("api_key_create", CREATE, administrator, approver)
    attempt = Attempt.objects.get()
    late = send_and_classify(
        lambda: SendReceipt(is_final=True, result={"name": "other"}, secret=SecretStr("another"))
    )
    record_result(attempt, late)
    assert Secret.objects.get().decrypted() == NEW
    assert Attempt.objects.get().result == attempt.result


def test_a_key_with_a_late_response_is_not_reported_lost(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    listed = listing((OLD_HASH, "old"), (NEW_HASH, "till"))
    answer(provider, {"message": "down"}, status=500, listed=listed)
    operation = sent("api_key_create", CREATE, administrator, approver)
    confirmation.confirm_operation(operation.pk)
    result = {"name": "till", "short_hash": "", "scope": "Read only (GetOnly)", "expires": ""}
    late = send_and_classify(lambda: SendReceipt(is_final=True, result=result, secret=SecretStr(NEW)))
    record_result(Attempt.objects.get(), late)
    refresh_keys()
    known = KnownKey.objects.get(short_hash=NEW_HASH)
    assert (known.is_lost, known.scope) == (False, "Read only (GetOnly)")
    assert Secret.objects.get().decrypted() == NEW


def test_a_malformed_list_does_not_lose_the_new_key(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    answer(
        provider, {"data": {"key": NEW}}, listed=listing((OLD_HASH, "old"), ("a\x00b" * 200, "\x00" * 900))
    )
    assert sent("api_key_create", FULL, administrator, approver).status == Status.SUCCEEDED
    assert Secret.objects.get().decrypted() == NEW
