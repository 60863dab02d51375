"""Where nobody enters the provider's one-time codes, no page has a field for one, and everything is sent without it."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.permissions import PREPARE
from backoffice.operations.workflow.bulk_release import release_pending
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import reloaded

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
FIELD = b'name="otp"'
TAKING_CODES = [kind.name for kind in KINDS.values() if kind.takes_otp]


@pytest.fixture(params=["not_asked", "managed"])
def _mode(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.OTP_MODE = request.param


@pytest.fixture(params=TAKING_CODES)
def pending(request: pytest.FixtureRequest, preparer: User, administrator: User) -> Operation:
    person = preparer if KINDS[request.param].permission == PREPARE else administrator
    return factories.prepared_of_kind(request.param, SAMPLES[request.param], person)


@pytest.fixture
def client(sign_in: SignIn, approver: User) -> Client:
    return sign_in(Client(), approver)


def path(page: str, operation: Operation) -> str:
    return reverse(f"operations:{page}", args=[operation.pk])


def test_there_are_kinds_that_take_a_code() -> None:
    assert {"withdrawal", "transfer"} <= set(TAKING_CODES)


def test_where_a_person_enters_codes_each_of_these_pages_has_the_field(
    client: Client, pending: Operation, approver: User
) -> None:
    """Otherwise the tests below would look for something that is never there."""
    assert FIELD in client.get(pending.get_absolute_url()).content
    approved = factories.approve(pending, approver)
    assert FIELD in client.get(approved.get_absolute_url()).content
    assert FIELD in client.get(f"/operations/send/?operation={approved.reference}").content


@pytest.mark.usefixtures("_mode")
def test_an_operation_is_approved_and_sent_at_once_without_a_code(client: Client, pending: Operation) -> None:
    page = client.get(pending.get_absolute_url())
    assert b"Approve and send" in page.content
    assert FIELD not in page.content
    answer = client.post(path("approve_and_send", pending), {"digest": pending.digest, **typed(pending)})
    assert answer.status_code == 302
    assert Release.objects.get().encrypted_otp is None
    assert FIELD not in client.get(pending.get_absolute_url()).content


@pytest.mark.usefixtures("_mode")
def test_an_approved_operation_is_sent_without_a_code(
    client: Client, pending: Operation, approver: User
) -> None:
    approved = factories.approve(pending, approver)
    assert FIELD not in client.get(approved.get_absolute_url()).content
    refused = client.post(path("release", approved), {"digest": "0" * 64})
    assert refused.status_code == 422
    assert FIELD not in refused.content
    assert client.post(path("release", approved), {"digest": approved.digest}).status_code == 302
    assert Release.objects.get().encrypted_otp is None


@pytest.mark.usefixtures("_mode")
def test_operations_are_sent_together_without_a_code(
    client: Client, pending: Operation, approver: User
) -> None:
    approved = factories.approve(pending, approver)
    address = f"/operations/send/?operation={approved.reference}"
    page = client.get(address)
    assert FIELD not in page.content
    assert b"new one for each" not in page.content
    chosen = {"submission": str(uuid4()), "selection": page.context["selection"].digest}
    refused = client.post(address, {**chosen, "selection": "other"})
    assert refused.status_code == 422
    assert FIELD not in refused.content
    assert client.post(address, chosen).status_code == 302
    order = BulkRelease.objects.get()
    assert FIELD not in client.get(order.get_absolute_url()).content
    release_pending(order.pk)
    assert Release.objects.get().operation == reloaded(approved)
    assert FIELD not in client.get(order.get_absolute_url()).content
    Release.objects.all().delete()
    page = client.get(order.get_absolute_url())
    assert page.context["form"] is not None, "it offers to continue"
    assert FIELD not in page.content


def typed(operation: Operation) -> dict[str, str]:
    """What the page asks the approver to type, if anything."""
    kind = KINDS[operation.kind]
    asked = kind.confirmation(kind.read(operation.payload))
    return {"confirmation": asked.expected} if asked else {}
