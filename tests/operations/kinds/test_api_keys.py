"""The four kinds about API keys: their forms, the exact requests, every end, and what proves it."""

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import credentials
from backoffice.core.models import GatewayKey
from backoffice.integration.models import KnownKey
from backoffice.integration.services import refresh_keys
from backoffice.operations import services
from backoffice.operations.kinds import KINDS, Payload, Receipt
from backoffice.operations.kinds.api_key_create import ApiKeyCreatePayload
from backoffice.operations.kinds.api_key_switch import ApiKeySwitchPayload
from backoffice.operations.kinds.key_form import KeyEndPayload
from backoffice.operations.kinds.listed_keys import ListedKey, expiry_of
from backoffice.operations.models import Attempt, Operation, Secret
from backoffice.operations.services.recording import answer_of, record_answer
from backoffice.operations.states import Outcome, Status
from payments_gateway import KeyInfo
from payments_gateway.api_keys import ApiKeys
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
UNREACHABLE = "http://127.0.0.1:9/v4"
NEW = "key-that-nobody-has-seen-yet-0001"
OLD_HASH, NEW_HASH = "3f2a91bc", "0a1b2c3d"
CREATE = ApiKeyCreatePayload(
    way="named", key_name="till", scope="G", scope_words="Read only (GetOnly)", keys_before=(OLD_HASH,)
)
FULL = ApiKeyCreatePayload(way="full", scope_words="Everything (Master)", keys_before=(OLD_HASH,))
END = SAMPLES["api_key_invalidate"]


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Scopes are remembered across tests."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)


def review(client: Client, kind: str, **typed: str) -> Any:
    values = {"submission": str(uuid.uuid4()), **typed, "step": "review"}
    return client.post(f"/operations/prepare/{kind}/", values)


def listing(*keys: tuple[str, str], ended: str | None = None) -> str:
    """The service's list: short hash and name of each key."""
    rows = [
        {"Apikey": short_hash, "Keyname": name, "Username": "m", "Expirable": False, "Expiration": 0}
        | {"DeletedAt": "2026-11-20T10:00:00Z" if short_hash == ended else None}
        for short_hash, name in keys
    ]
    return json.dumps({"Apikeys": rows})


def answer(service: StubService, body: object, *, status: int = 200, listed: str = "{}") -> None:
    """Answer what changes something like this, and the list of keys like that."""
    service.answer_post = lambda: (status, json.dumps(body))
    service.keys = listed


def sent(kind: str, payload: Payload, administrator: User, checker: User) -> Operation:
    """Prepared, countersigned, released and sent."""
    operation = factories.countersigned(factories.of_kind(kind, payload, administrator), checker)
    services.release_operation(
        operation.pk,
        actor=checker,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        token=SecretStr("123456") if KINDS[kind].needs_token else None,
    )
    services.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


# ---- forms ----

NAMED = {"way": "named", "key_name": "till", "scope": "G", "expires_in": "90", "expires_unit": "days"}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"way": ""}, "way", "required"),
        ({"way": "other"}, "way", "not one of the available choices"),
        ({"key_name": ""}, "key_name", "Give the key a name."),
        ({"key_name": "x" * 121}, "key_name", "at most 120 characters"),
        ({"key_name": "till\u2028roll"}, "key_name", "one line of printable characters"),
        ({"key_name": "first key"}, "key_name", "has a key of this name already"),
        ({"scope": ""}, "scope", "Choose what the key may do."),
        ({"scope": "X"}, "scope", "not one of the available choices"),
        ({"expires_in": "0"}, "expires_in", "greater than or equal to 1"),
        ({"expires_in": "soon"}, "expires_in", "whole number"),
        ({"expires_in": "3651"}, "expires_in", "at most 3650 days"),
        ({"expires_in": "121", "expires_unit": "months"}, "expires_in", "at most 120 months"),
        ({"expires_unit": "weeks"}, "expires_unit", "not one of the available choices"),
        ({"expires_unit": ""}, "expires_unit", "days or months"),
        ({"rotation": "no-uuid"}, "rotation", "damaged"),
    ],
)
def test_a_key_that_cannot_be_is_refused_beside_its_field(
    as_administrator: Client,
    sandbox: SandboxProcess,
    changes: dict[str, str],
    field: str,
    message: str,
) -> None:
    refused = review(as_administrator, "api_key_create", **{**NAMED, **changes})
    assert refused.status_code == 422
    assert message in " ".join(refused.context["form"].errors[field])


@pytest.mark.parametrize(
    ("typed", "facts"),
    [
        (NAMED, {"Name": "till", "Ends": "90 days after it is made", "Made by": "POST /user/api-key"}),
        ({**NAMED, "expires_in": "1", "expires_unit": "months"}, {"Ends": "1 month after it is made"}),
        ({**NAMED, "expires_in": ""}, {"Ends": "as the service decides"}),
        ({"way": "full"}, {"Name": "as the service decides", "Made by": "POST /auth/api-key"}),
    ],
)
def test_a_review_says_what_key_it_will_be(
    as_administrator: Client, sandbox: SandboxProcess, typed: dict[str, str], facts: dict[str, str]
) -> None:
    reviewed = review(as_administrator, "api_key_create", **typed)
    assert reviewed.status_code == 200
    assert dict(reviewed.context["facts"]).items() >= facts.items()


@pytest.mark.parametrize("typed", [{**NAMED, "scope": "M"}, {"way": "full"}])
def test_of_a_key_with_all_rights_people_are_warned(
    as_administrator: Client, sandbox: SandboxProcess, typed: dict[str, str]
) -> None:
    assert "may move all the money" in " ".join(
        review(as_administrator, "api_key_create", **typed).context["cautions"]
    )


def test_scopes_are_in_plain_words(as_administrator: Client, sandbox: SandboxProcess) -> None:
    page = as_administrator.get("/operations/prepare/api_key_create/").content.decode()
    for words in ("Everything: read, convert, pay out", "Read only: balances", "pay nothing out"):
        assert words in page


@pytest.mark.parametrize("kind", ["api_key_invalidate", "api_key_delete"])
def test_only_a_key_of_the_list_can_be_ended(
    as_administrator: Client, sandbox: SandboxProcess, kind: str
) -> None:
    refused = review(as_administrator, kind, short_hash="00000000")
    assert "has no key 00000000" in " ".join(refused.context["form"].errors["short_hash"])
    assert review(as_administrator, kind, short_hash="").status_code == 422


@pytest.mark.parametrize("kind", ["api_key_invalidate", "api_key_delete"])
def test_ending_the_key_in_use_is_warned_of(
    as_administrator: Client, sandbox: SandboxProcess, kind: str
) -> None:
    own = credentials.key_in_use().short_hash
    reviewed = review(as_administrator, kind, short_hash=own)
    facts = dict(reviewed.context["facts"])
    assert facts["API key"] == "first key"
    assert facts["Short hash"] == own
    assert facts["Last use"] == "in use by Countersign now"
    assert "Countersign itself calls the service with this key" in reviewed.context["cautions"][0]


def test_where_the_own_key_cannot_be_told_people_are_warned_too(
    as_administrator: Client, service: StubService
) -> None:
    answer(service, {}, listed=listing((OLD_HASH, "somebody's")))
    reviewed = review(as_administrator, "api_key_delete", short_hash=OLD_HASH)
    assert "so it may be this one" in reviewed.context["cautions"][0]


def test_a_key_that_was_invalidated_can_be_deleted_and_not_invalidated_again(
    as_administrator: Client, service: StubService
) -> None:
    answer(service, {}, listed=listing((OLD_HASH, "old"), ended=OLD_HASH))
    assert review(as_administrator, "api_key_invalidate", short_hash=OLD_HASH).status_code == 422
    assert review(as_administrator, "api_key_delete", short_hash=OLD_HASH).status_code == 200


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        ("api_key_create", NAMED),
        ("api_key_invalidate", {"short_hash": OLD_HASH}),
        ("api_key_delete", {"short_hash": OLD_HASH}),
    ],
)
def test_while_the_list_cannot_be_read_nothing_is_prepared(
    as_administrator: Client, settings: Settings, kind: str, typed: dict[str, str]
) -> None:
    settings.GATEWAY_URL = settings.GATEWAY_URL_V4 = UNREACHABLE
    refused = review(as_administrator, kind, **typed)
    assert refused.status_code == 422
    assert "cannot be read now. Nothing was prepared" in refused.content.decode()
    assert not Operation.objects.exists()


def test_a_link_fills_the_form_in(as_administrator: Client, settings: Settings) -> None:
    settings.GATEWAY_URL = settings.GATEWAY_URL_V4 = UNREACHABLE
    opened = as_administrator.get(f"/operations/prepare/api_key_invalidate/?short_hash={OLD_HASH}")
    assert f'value="{OLD_HASH}" selected' in opened.content.decode()


def test_only_a_sealed_key_can_be_switched_to(as_administrator: Client) -> None:
    refused = review(as_administrator, "api_key_switch", target=f"made:{uuid.uuid4()}")
    assert "not sealed here any more" in " ".join(refused.context["form"].errors["target"])


# ---- requests ----


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
def test_a_new_key_is_asked_for_in_exactly_these_words(
    service: StubService,
    administrator: User,
    checker: User,
    payload: Payload,
    path: str,
    body: dict[str, object],
) -> None:
    answer(service, {"data": {"apikey": NEW}})
    sent("api_key_create", payload, administrator, checker)
    assert service.changes == [f"POST {path}"]
    assert json.loads(service.posts[0]) == body


def test_a_key_is_invalidated_by_its_short_hash(
    service: StubService, administrator: User, checker: User
) -> None:
    answer(service, {"message": "done"})
    operation = sent("api_key_invalidate", END, administrator, checker)
    assert service.changes == ["POST /v4/user/api-key/invalidate"]
    assert json.loads(service.posts[0]) == {"apikey": NEW_HASH}
    assert operation.status == Status.SUCCEEDED


def test_a_key_that_is_kept_here_is_invalidated_by_itself(
    service: StubService, administrator: User, checker: User
) -> None:
    kept = GatewayKey(name="till", short_hash=NEW_HASH, state="former", since=timezone.now())
    kept.seal(NEW)
    kept.save()
    answer(service, {"message": "done"})
    known = END.model_copy(update={"is_known_here": True})
    sent("api_key_invalidate", known, administrator, checker)
    assert json.loads(service.posts[0]) == {"apikey": NEW}


def test_a_key_that_is_no_longer_kept_is_not_invalidated_by_something_else(
    service: StubService, administrator: User, checker: User
) -> None:
    known = END.model_copy(update={"is_known_here": True})
    operation = sent("api_key_invalidate", known, administrator, checker)
    assert (operation.status, service.changes) == (Status.APPROVED, [])


def test_a_key_is_deleted_by_its_short_hash(service: StubService, administrator: User, checker: User) -> None:
    answer(service, {"message": "done"})
    assert sent("api_key_delete", END, administrator, checker).status == Status.SUCCEEDED
    assert service.changes == [f"DELETE /v4/user/api-key?apikeyHash={NEW_HASH}"]


# ---- ends ----

ENDS: list[tuple[int, object, Status, Outcome]] = [
    (400, {"message": "Invalid OTP token"}, Status.APPROVED, Outcome.TOKEN_REFUSED),
    (400, {"message": "invalid API scope"}, Status.FAILED, Outcome.REJECTED),
    (401, {"message": "X-Api-Key is not valid"}, Status.FAILED, Outcome.REJECTED),
    (500, {"message": "internal error"}, Status.UNKNOWN, Outcome.OPEN),
    (200, {"data": {}}, Status.UNKNOWN, Outcome.OPEN),
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("payload", [CREATE, FULL], ids=["named", "full"])
def test_each_answer_to_a_creation_leads_to_what_it_proves(
    service: StubService,
    administrator: User,
    checker: User,
    payload: Payload,
    end: tuple[int, object, Status, Outcome],
) -> None:
    status, body, ends, outcome = end
    answer(service, body, status=status)
    assert sent("api_key_create", payload, administrator, checker).status == ends
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
def test_what_the_service_made_is_sealed_and_told_by_its_short_hash_only(
    service: StubService,
    administrator: User,
    checker: User,
    payload: Payload,
    listed: str,
    short_hash: str,
) -> None:
    answer(service, {"data": {"apikey": NEW}}, listed=listed)
    operation = sent("api_key_create", payload, administrator, checker)
    assert operation.status == Status.SUCCEEDED
    result = Attempt.objects.get().result or {}
    assert set(result) == {"name", "short_hash", "scope", "expires"}
    assert result["short_hash"] == short_hash
    secret = Secret.objects.get()
    assert (secret.belongs_to, secret.unsealed()) == (checker, NEW)
    assert NEW not in json.dumps([operation.payload, result])


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("payload", [CREATE, FULL], ids=["named", "full"])
def test_a_worker_that_is_killed_right_after_the_answer_has_kept_the_key(
    service: StubService,
    administrator: User,
    checker: User,
    payload: Payload,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer(service, {"data": {"apikey": NEW}}, listed=listing((OLD_HASH, "old"), (NEW_HASH, "till")))

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ApiKeys, "list", die)
        with pytest.raises(Killed):
            sent("api_key_create", payload, administrator, checker)
    assert Operation.objects.get().status == Status.SUCCEEDED
    assert Secret.objects.get().unsealed() == NEW
    assert (Attempt.objects.get().result or {})["short_hash"] == ""
    refresh_keys()
    result = Attempt.objects.get().result or {}
    assert (result["name"], result["short_hash"]) == ("till", NEW_HASH)
    assert KnownKey.objects.get(short_hash=NEW_HASH).scope == payload.scope_words  # type: ignore[attr-defined]


def test_an_answer_recorded_twice_keeps_one_secret(
    service: StubService, administrator: User, checker: User
) -> None:
    answer(service, {"data": {"apikey": NEW}}, listed="{}")
    sent("api_key_create", CREATE, administrator, checker)
    attempt = Attempt.objects.get()
    late = answer_of(lambda: Receipt(is_final=True, result={"name": "other"}, secret=SecretStr("another")))
    record_answer(attempt.pk, late)
    assert Secret.objects.get().unsealed() == NEW
    assert Attempt.objects.get().result == attempt.result


def test_a_key_whose_answer_came_late_is_not_called_lost(
    service: StubService, administrator: User, checker: User
) -> None:
    listed = listing((OLD_HASH, "old"), (NEW_HASH, "till"))
    answer(service, {"message": "down"}, status=500, listed=listed)
    operation = sent("api_key_create", CREATE, administrator, checker)
    services.confirm_operation(operation.pk)
    result = {"name": "till", "short_hash": "", "scope": "Read only (GetOnly)", "expires": ""}
    late = answer_of(lambda: Receipt(is_final=True, result=result, secret=SecretStr(NEW)))
    record_answer(Attempt.objects.get().pk, late)
    refresh_keys()
    known = KnownKey.objects.get(short_hash=NEW_HASH)
    assert (known.is_lost, known.scope) == (False, "Read only (GetOnly)")
    assert Secret.objects.get().unsealed() == NEW


def test_a_hostile_list_does_not_lose_the_new_key(
    service: StubService, administrator: User, checker: User
) -> None:
    answer(service, {"data": {"key": NEW}}, listed=listing((OLD_HASH, "old"), ("a\x00b" * 200, "\x00" * 900)))
    assert sent("api_key_create", FULL, administrator, checker).status == Status.SUCCEEDED
    assert Secret.objects.get().unsealed() == NEW


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
def test_an_unknown_creation_is_closed_by_the_list_where_that_leaves_no_doubt(
    service: StubService, administrator: User, checker: User, payload: Payload, listed: str, ends: Status
) -> None:
    answer(service, {"message": "down"}, status=500, listed=listed)
    operation = sent("api_key_create", payload, administrator, checker)
    assert operation.status == Status.UNKNOWN
    assert services.confirm_operation(operation.pk).status == ends


def test_a_key_that_another_operation_made_closes_no_second_one(
    service: StubService, administrator: User, checker: User
) -> None:
    both = listing((OLD_HASH, "old"), (NEW_HASH, "any"))
    answer(service, {"data": {"key": NEW}}, listed=both)
    sent("api_key_create", FULL, administrator, checker)
    answer(service, {"message": "down"}, status=500, listed=both)
    operation = sent("api_key_create", FULL, administrator, checker)
    assert services.confirm_operation(operation.pk).status == Status.UNKNOWN


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
    service: StubService, administrator: User, checker: User, kind: str, listed: str, ends: Status
) -> None:
    answer(service, {"message": "down"}, status=500, listed=listed)
    operation = sent(kind, END, administrator, checker)
    assert operation.status == Status.UNKNOWN
    assert services.confirm_operation(operation.pk).status == ends


def test_an_unknown_switch_is_closed_by_the_key_in_use(service: StubService) -> None:
    made_by = uuid.uuid4()
    payload = ApiKeySwitchPayload.model_validate(
        {**SAMPLES["api_key_switch"].model_dump(), "target": f"made:{made_by}"}
    )
    kind: Any = KINDS["api_key_switch"]
    assert not kind.is_done(None, payload)
    key = GatewayKey(name="till", made_by=made_by)
    key.seal(NEW)
    credentials.use_key(key)
    assert kind.is_done(None, payload)


def test_facts_name_a_key_without_a_name_or_an_end() -> None:
    payload = KeyEndPayload.model_validate({**END.model_dump(), "name": ""})
    facts = dict(KINDS["api_key_invalidate"].facts(payload))
    assert (facts["API key"], facts["Ends"]) == ("without a name", "never, by itself")


@pytest.mark.parametrize(
    ("zone", "written"),
    [("Africa/Lagos", "1 Jan 2027, 00:30 WAT"), ("America/New_York", "31 Dec 2026, 18:30 EST")],
)
def test_everybody_reads_the_end_of_a_key_in_a_time_zone_of_their_own(zone: str, written: str) -> None:
    ends = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    before = KeyEndPayload.model_validate({**END.model_dump(), "expires": ends.isoformat()})
    listed = ListedKey("0a1b2c3d", "till", "Everything", ends, None, is_in_use=False)
    with timezone.override(zone):
        assert dict(KINDS["api_key_invalidate"].facts(before))["Ends"] == written
        assert dict(KINDS["api_key_create"].outcome_facts(CREATE, {"expires": ends.isoformat()})) == {
            "Ends": written
        }
        assert f"ends {written}" in listed.label


def test_an_operation_that_ends_a_key_says_once_when_it_expires_itself(
    sign_in: SignIn, administrator: User
) -> None:
    ends = datetime(2026, 12, 31, 23, 30, tzinfo=UTC).isoformat()
    payload = KeyEndPayload.model_validate({**END.model_dump(), "expires": ends})
    operation = factories.of_kind("api_key_invalidate", payload, administrator)
    page = sign_in(Client(), administrator).get(operation.get_absolute_url()).content.decode()
    assert page.count("<dt>Expires</dt>") == 1
    assert "<dt>Ends</dt>" in page
    assert "1 Jan 2027, 00:30 WAT" in page


def test_an_end_of_zero_seconds_is_none(service: StubService) -> None:
    end = datetime(2027, 1, 1, tzinfo=UTC)
    keys = [
        KeyInfo(short_hash="a", is_expirable=flag, expires_at=at)
        for flag, at in [(True, end), (None, end), (False, end), (None, datetime(1970, 1, 1, tzinfo=UTC))]
    ]
    assert [expiry_of(key) for key in keys] == [end, end, None, None]
