"""Canaries, the people who carry them about, and a provider that repeats them."""

import logging
from collections.abc import Callable, Iterator

import pytest
from pytest_django import Settings

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from tests import factories, stub_provider
from tests.accounts import steps
from tests.core.secrets.canaries import Canaries, Sinks
from tests.core.secrets.steps import Reader, answer_with
from tests.stub_provider import StubProvider


@pytest.fixture
def canaries(settings: Settings) -> Canaries:
    planted = Canaries()
    settings.GATEWAY_API_KEY = planted.api_key
    return planted


@pytest.fixture
def provider(settings: Settings, canaries: Canaries) -> Iterator[StubProvider]:
    """A provider that repeats every secret in all that it says."""
    with stub_provider.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        answer_with(stub, 200, {"data": {"transactionId": "T-1"}}, canaries)
        yield stub


@pytest.fixture
def sinks(canaries: Canaries, log_lines: Callable[[], str], caplog: pytest.LogCaptureFixture) -> Sinks:
    caplog.set_level(logging.DEBUG)
    return Sinks(canaries, [], log_lines, caplog)


@pytest.fixture
def as_approver(sinks: Sinks, canaries: Canaries) -> Reader:
    """An approver who came by all steps, with every mistake on the way."""
    user = staff.create_staff(
        "amara@countersign.example",
        full_name="Amara Okafor",
        roles=[Role.APPROVER, Role.AUDITOR],
    )
    user.set_password(canaries.password)
    user.save()
    browser = Reader(sinks.pages)
    steps.give_password(browser, user, canaries.password + " ")
    steps.give_password(browser, user, canaries.password)
    browser.post("/account/sign-out/")
    steps.open_link(browser, user, canaries.password)
    browser.get("/account/authenticator/")
    device = steps.authenticator(user, confirmed=False)
    canaries.seed = device.totp().key
    canaries.recovery_codes = browser.post(
        "/account/authenticator/", {"code": steps.code_of(device)}
    ).context["codes"]
    browser.post("/account/recovery-codes/stored/")
    browser.post("/account/sign-out/")
    return sign_in_with_a_recovery_code(browser, user, canaries)


def sign_in_with_a_recovery_code(browser: Reader, user: User, canaries: Canaries) -> Reader:
    steps.give_password(browser, user, canaries.password)
    steps.give_code(browser, steps.wrong_code(steps.authenticator(user)))
    steps.unlock(user)
    assert steps.give_code(browser, canaries.recovery_codes[0])["Location"] == "/"
    return browser


@pytest.fixture
def as_preparer(sinks: Sinks, preparer: User) -> Reader:
    browser = Reader(sinks.pages)
    factories.sign_in(browser, preparer)
    return browser
