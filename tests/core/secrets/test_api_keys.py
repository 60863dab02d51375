"""A new API key is in no place that keeps anything, from its making to its showing or its taking into use."""

import json

import pytest
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.core import credentials
from backoffice.operations.delivery import send
from backoffice.operations.kinds.api_keys.create import ApiKeyCreatePayload
from backoffice.operations.kinds.api_keys.switch import stored_keys
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.secret import Secret
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from tests import factories
from tests.core.secrets.canaries import Canaries, Sinks
from tests.core.secrets.steps import Reader, open_pages
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
NAMED = ApiKeyCreatePayload(method="named", key_name="till", scope="M", scope_text="Everything (Master)")
FULL = ApiKeyCreatePayload(method="full", scope_text="Everything (Master)")


@pytest.fixture
def makes_keys(provider: StubProvider, canaries: Canaries) -> StubProvider:
    """The provider hands out the new key, and repeats it and every other secret wherever it can."""
    echo = f"{canaries.new_key} {canaries.api_key} {canaries.otp}"
    answer = {"data": {"apikey": canaries.new_key, "key": canaries.new_key, "note": echo}, "message": echo}
    provider.answer_post = lambda: (200, json.dumps(answer))
    listed = {"Apikey": "0a1b2c3d", "Keyname": "till", "Username": echo}
    provider.keys = json.dumps({"Apikeys": [listed], "note": echo})
    return provider


def carry_out(
    kind: str, payload: Payload, administrator: User, approver: Reader, canaries: Canaries
) -> Operation:
    """Prepared by one person; approved and released by the other, on the page; sent."""
    operation = factories.prepared_of_kind(kind, payload, administrator)
    otp = {"otp": canaries.otp} if KINDS[kind].asks_for_otp else {}
    values = {"digest": operation.digest, **otp}
    assert approver.post(f"/operations/{operation.pk}/approve-and-send/", values).status_code == 302
    send.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


def open_key_pages(browser: Reader, operation: Operation) -> None:
    open_pages(browser, operation)
    for address in (
        "/settings/api-keys/",
        "/settings/api-keys/list/",
        "/settings/api-keys/rotation/",
        f"/settings/api-keys/secret/{operation.pk}/",
    ):
        assert browser.get(address).status_code in {200, 410}, address
    assert browser.get("/reports/api-keys.csv").status_code == 200


@pytest.mark.parametrize("payload", [NAMED, FULL], ids=["named", "full"])
def test_a_new_key_appears_only_on_the_reveal_page(
    makes_keys: StubProvider,
    sinks: Sinks,
    as_approver: Reader,
    administrator: User,
    canaries: Canaries,
    payload: Payload,
) -> None:
    operation = carry_out("api_key_create", payload, administrator, as_approver, canaries)
    assert operation.status == Status.SUCCEEDED
    open_key_pages(as_approver, operation)
    assert sinks.leaks() == set()
    address = f"/settings/api-keys/secret/{operation.pk}/"
    assert canaries.new_key in as_approver.post(address).content.decode()
    as_approver.post(address)
    open_key_pages(as_approver, operation)
    assert sinks.leaks() == {(address, "new key")}
    assert not Secret.objects.exists()


def test_an_activated_key_appears_nowhere(
    makes_keys: StubProvider, sinks: Sinks, as_approver: Reader, administrator: User, canaries: Canaries
) -> None:
    carry_out("api_key_create", NAMED, administrator, as_approver, canaries)
    [target] = stored_keys()
    target = target.model_copy(update={"replaced_hash": credentials.key_in_use().short_hash})
    switched = carry_out("api_key_switch", target, administrator, as_approver, canaries)
    assert switched.status == Status.SUCCEEDED
    assert credentials.key_in_use().secret == SecretStr(canaries.new_key)
    makes_keys.answer_post = lambda: (500, json.dumps({"message": f"cannot {canaries.new_key}"}))
    ended = KINDS["api_key_invalidate"]
    payload = ended.payload_type(
        short_hash="0a1b2c3d",
        name="till",
        scope="",
        expires="",
        is_known_here=True,
        knows_own_key=True,
        is_in_use=True,
    )
    operation = carry_out("api_key_invalidate", payload, administrator, as_approver, canaries)
    assert operation.status == Status.UNKNOWN
    open_key_pages(as_approver, operation)
    assert sinks.leaks() == set()


@pytest.mark.parametrize("status", [400, 401, 500, 502])
def test_a_key_in_an_unsuccessful_response_is_not_stored_or_logged(
    makes_keys: StubProvider,
    sinks: Sinks,
    as_approver: Reader,
    administrator: User,
    canaries: Canaries,
    status: int,
) -> None:
    body = {"success": False, "message": f"{canaries.new_key} exists", "errors": [canaries.new_key]}
    makes_keys.answer_post = lambda: (status, json.dumps(body))
    operation = carry_out("api_key_create", NAMED, administrator, as_approver, canaries)
    confirmation.confirm_operation(operation.pk)
    open_key_pages(as_approver, operation)
    assert sinks.leaks() == set()
