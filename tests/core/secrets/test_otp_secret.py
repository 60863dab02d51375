"""The authenticator secret is in no place that keeps anything, from the form to its use."""

import json
import secrets
import uuid

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import TotpSecret, otp_secret_in_use
from backoffice.operations.states import Status
from tests import factories
from tests.core.secrets.canaries import Canaries, Sinks
from tests.core.secrets.steps import Reader, open_pages, prepare
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/operations/prepare/otp_secret/"


@pytest.fixture
def as_administrator(sinks: Sinks, administrator: User) -> Reader:
    browser = Reader(sinks.pages)
    factories.sign_in(browser, administrator)
    return browser


def test_the_authenticator_secret_and_its_codes_appear_nowhere(
    provider: StubProvider,
    sinks: Sinks,
    as_administrator: Reader,
    as_preparer: Reader,
    as_approver: Reader,
    canaries: Canaries,
    settings: Settings,
) -> None:
    settings.OTP_MODE = "managed"
    canaries.seed = secrets.token_bytes(20)
    secret = TotpSecret(canaries.seed, digits=8)  # long enough not to be found by chance
    typed = {
        "submission": str(uuid.uuid4()),
        "change": "store",
        "secret": secret.address(),
        "code": secret.code(secret.step_at(timezone.now())).get_secret_value(),
    }
    as_administrator.post(ADDRESS, {**typed, "code": "wrong", "step": "review"})
    as_administrator.post(ADDRESS, {**typed, "step": "check"})
    as_administrator.post(ADDRESS, {**typed, "step": "change"})
    as_administrator.get(ADDRESS, {"submission": typed["submission"]})
    reviewed = as_administrator.post(ADDRESS, {**typed, "step": "review"})
    carried = {
        **typed,
        "secret": "",
        "code": "",
        "sealed": reviewed.context["form"]["sealed"].value(),
        "digest": reviewed.context["digest"],
    }
    settings.ENCRYPTION_KEYS, keys = ["broken"], settings.ENCRYPTION_KEYS
    as_administrator.raise_request_exception = False
    assert as_administrator.post(ADDRESS, {**typed, "step": "review"}).status_code == 500
    settings.ENCRYPTION_KEYS = keys
    assert as_administrator.post(ADDRESS, {**carried, "step": "prepare"}).status_code == 302
    operation = Operation.objects.get(kind="otp_secret")
    open_pages(as_administrator, operation)
    values = {"digest": operation.digest}
    assert as_approver.post(f"/operations/{operation.pk}/approve/", values).status_code == 302
    assert otp_secret_in_use() is not None
    paid = prepare(as_preparer)
    assert (
        as_approver.post(f"/operations/{paid.pk}/approve-and-send/", {"digest": paid.digest}).status_code
        == 302
    )
    send.send_operation(paid.pk)
    assert Operation.objects.get(pk=paid.pk).status == Status.PROCESSING
    canaries.otp = json.loads(provider.posts[-1])["token"]
    open_pages(as_approver, operation)
    open_pages(as_approver, paid)
    assert sinks.leaks() == set()
