"""The callback address: what may be one, old beside new, the request, and the read that proves it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.ledger.callback import is_same_address
from backoffice.operations import services
from backoffice.operations.errors import OneByOneError
from backoffice.operations.kinds import KINDS
from backoffice.operations.kinds.callback_url import CallbackUrlPayload, check_public_address
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.policy import check_in_bulk
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
ADDRESS = "/operations/prepare/callback_url/"
BEFORE, AFTER = "https://hooks.example.com/before", "https://pay.example.com/webhooks"


@pytest.fixture
def as_administrator(sign_in: SignIn, administrator: User) -> Client:
    return sign_in(Client(), administrator)


def sample(**changes: Any) -> CallbackUrlPayload:
    payload = SAMPLES["callback_url"].model_copy(update=changes)
    assert isinstance(payload, CallbackUrlPayload)
    return payload


def sent(maker: User, checker: User, **changes: Any) -> Operation:
    pending = factories.of_kind("callback_url", sample(**changes), maker)
    operation = factories.release(factories.countersigned(pending, checker), checker)
    services.send_operation(operation.pk)
    return Operation.objects.get(pk=operation.pk)


def review(client: Client, url: str) -> Any:
    return client.post(ADDRESS, {"url": url, "step": "review"})


@pytest.mark.parametrize(
    "url",
    [
        AFTER,
        "https://8.8.8.8/hooks",
        "https://[2001:4860:4860::8888]:8443/hooks",
        "https://xn--bcher-kva.example/hooks?tenant=1",
        "https://pay.example.com.",
        "https://pay.example.com/" + "x" * 2024,
    ],
)
def test_a_public_https_address_is_taken_everywhere(settings: Settings, url: str) -> None:
    settings.ENVIRONMENT = "production"
    check_public_address(url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://pay.example.com/hooks", "Use https"),
        ("ftp://pay.example.com/hooks", "Begin with https://"),
        ("pay.example.com/hooks", "Begin with https://"),
        ("https:///hooks", "Begin with https://"),
        ("https://pay.example.com:0/hooks", "Begin with https://"),
        ("https://pay.example.com:99999/hooks", "host or port cannot be read"),
        ("https://[::1/hooks", "host or port cannot be read"),
        ("https://ada:secret@pay.example.com/", "user name and password"),
        ("https://pay.example.com/#top", "never sent"),
        ("https://pay.example.com/a b", "without spaces"),
        ("https://pay.example.com\\@10.0.0.1/", "backslashes"),
        ("https://bücher.example/hooks", "xn--"),
        ("https://127.0.0.1/hooks", "private"),
        ("https://localhost/hooks", "private"),
        ("https://localhost./hooks", "private"),
        ("https://shop.localhost/hooks", "private"),
        ("https://intranet/hooks", "private"),
        ("https://printer.local/hooks", "private"),
        ("https://metadata.google.internal/", "private"),
        ("https://10.1.2.3/hooks", "private"),
        ("https://172.16.0.1/hooks", "private"),
        ("https://192.168.1.1/hooks", "private"),
        ("https://169.254.169.254/latest", "private"),
        ("https://100.64.0.1/hooks", "private"),
        ("https://0.0.0.0/hooks", "private"),
        ("https://224.0.0.1/hooks", "private"),
        ("https://255.255.255.255/hooks", "private"),
        ("https://127.1/hooks", "private"),
        ("https://2130706433/hooks", "private"),
        ("https://0x7f000001/hooks", "private"),
        ("https://0177.0.0.1/hooks", "private"),
        ("https://[::1]/hooks", "private"),
        ("https://[::]/hooks", "private"),
        ("https://[fe80::1]/hooks", "private"),
        ("https://[fd00::1]/hooks", "private"),
        ("https://[::ffff:10.0.0.1]/hooks", "private"),
        ("https://[2002:a00:1::]/hooks", "private"),
        ("https://[64:ff9b::a00:1]/hooks", "private"),
    ],
)
@pytest.mark.parametrize("environment", ["staging", "production"])
def test_any_other_address_is_refused_with_the_reason(
    settings: Settings, environment: str, url: str, said: str
) -> None:
    settings.ENVIRONMENT = environment
    with pytest.raises(ValidationError) as refused:
        check_public_address(url)
    assert said in " ".join(refused.value.messages)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/hooks", "http://localhost/hooks", "https://[::1]/hooks"]
)
def test_this_machine_is_taken_in_the_sandbox_only(settings: Settings, url: str) -> None:
    check_public_address(url)
    settings.ENVIRONMENT = "staging"
    with pytest.raises(ValidationError):
        check_public_address(url)


@pytest.mark.parametrize("url", ["http://pay.example.com/hooks", "https://10.0.0.1/hooks"])
def test_other_machines_are_checked_in_the_sandbox_too(url: str) -> None:
    with pytest.raises(ValidationError):
        check_public_address(url)


def test_the_review_shows_old_beside_new(as_administrator: Client, service: StubService) -> None:
    html = review(as_administrator, AFTER).content.decode()
    assert f"<h1>Send webhooks to {AFTER}</h1>" in html
    assert html.index("New address") < html.index("Old address") < html.index(BEFORE)


def test_the_form_shows_the_present_address_while_it_is_filled_in(
    as_administrator: Client, service: StubService
) -> None:
    html = as_administrator.post(f"{ADDRESS}check/", {"url": ""}).content.decode()
    assert BEFORE in html
    assert "required" not in html


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "This field is required."),
        ("https://pay.example.com/" + "x" * 2025, "at most 2048"),
        ("https://10.0.0.1/", "private"),
        (BEFORE, "The service has this address already."),
    ],
)
def test_bad_input_is_said_beside_its_field_and_loses_nothing(
    as_administrator: Client, service: StubService, url: str, said: str
) -> None:
    answer = review(as_administrator, url)
    assert answer.status_code == 422
    assert said in " ".join(answer.context["form"].errors["url"])
    assert answer.context["form"]["url"].value() == url
    assert not Operation.objects.exists()


def test_without_the_present_address_nothing_is_prepared(
    as_administrator: Client, service: StubService
) -> None:
    service.callback = "42"
    answer = review(as_administrator, AFTER)
    assert answer.status_code == 422
    assert "could not tell the present address" in answer.content.decode()


def test_an_address_that_changed_after_the_review_is_reviewed_again(
    as_administrator: Client, service: StubService
) -> None:
    shown = review(as_administrator, AFTER)
    service.callback = '"https://hooks.example.com/other"'
    values = {"url": AFTER, "step": "prepare"}
    for name in ("submission", "digest"):
        values[name] = str(shown.context[name])
    answer = as_administrator.post(ADDRESS, values)
    assert answer.status_code == 422
    assert "not the one you reviewed" in answer.content.decode()
    assert not Operation.objects.exists()


def test_the_longest_address_fits_into_every_column(
    as_administrator: Client, administrator: User, service: StubService
) -> None:
    longest = "https://" + "a" * 60 + ".example.com/" + "x" * 1967
    assert len(longest) == 2048
    operation = factories.of_kind("callback_url", sample(url=longest), administrator)
    assert len(operation.sentence) <= 200
    assert len(operation.counterparty) <= 200
    assert longest in as_administrator.get(f"/operations/{operation.pk}/").content.decode()


def test_the_request_is_exactly_what_was_countersigned(
    administrator: User, checker: User, service: StubService
) -> None:
    sent(administrator, checker)
    assert service.changes == ["PUT /v2/callbackurl"]
    assert json.loads(service.posts[0]) == {"callbackUrl": AFTER}


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (200, '{"success": true, "message": "Callback URL updated"}', Status.PROCESSING),
        (400, '{"message": "callbackUrl must be an http or https URL"}', Status.FAILED),
        (403, '{"message": "no scope"}', Status.FAILED),
        (500, '{"message": "internal error"}', Status.UNKNOWN),
    ],
)
def test_every_answer_leads_somewhere(
    administrator: User, checker: User, service: StubService, status: int, body: str, ends: Status
) -> None:
    service.answer_post = lambda: (status, body)
    assert sent(administrator, checker).status == ends


@pytest.mark.parametrize(
    "told",
    ['"https://hooks.example.com/other"', f'"{AFTER}"', "null", "42"],
    ids=["other", "new", "none", "odd"],
)
def test_it_is_not_sent_unless_the_old_address_is_the_one_that_was_countersigned(
    administrator: User, checker: User, as_administrator: Client, service: StubService, told: str
) -> None:
    service.callback = told
    operation = sent(administrator, checker)
    assert (operation.status, service.changes) == (Status.APPROVED, [])
    assert Attempt.objects.get(operation=operation).outcome == Outcome.NOT_SENT
    assert "Nothing was changed" in as_administrator.get(f"/operations/{operation.pk}/").content.decode()


def test_the_old_address_in_another_spelling_is_the_one_that_was_countersigned(
    administrator: User, checker: User, service: StubService
) -> None:
    service.callback = f'"{BEFORE.replace("https://", "HTTPS://").replace(".com", ".COM:443")}"'
    sent(administrator, checker)
    assert service.changes == ["PUT /v2/callbackurl"]


def test_it_is_countersigned_on_its_own_page_only(administrator: User) -> None:
    with pytest.raises(OneByOneError):
        check_in_bulk(factories.of_kind("callback_url", sample(), administrator))


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("told", "proven"),
    [
        (f'"{AFTER}"', True),
        (f'"{AFTER}/"', False),
        (f'"{BEFORE}"', False),
        ("null", False),
        ("42", False),
        (f'"{AFTER.replace("https://", "HTTPS://")}"', True),
        (f'"{AFTER.replace(".com", ".COM:443")}"', True),
        (f'"{AFTER.replace(".com", ".com:8443")}"', False),
    ],
)
def test_only_the_same_address_read_back_proves_it(
    administrator: User, checker: User, service: StubService, status: int, told: str, proven: bool
) -> None:
    service.answer_post = lambda: (status, '{"success": true, "message": "ok"}')
    operation = sent(administrator, checker)
    service.callback = told
    assert (services.confirm_operation(operation.pk).status == Status.SUCCEEDED) is proven


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example", "https://a.example/", True),
        ("https://a.example", "HTTPS://A.Example:443", True),
        ("http://a.example:80/x", "http://a.example/x", True),
        ("https://a.example?x=1", "https://a.example/?x=1", True),
        ("https://a.example/x", "https://a.example/x/", False),
        ("https://a.example/x", "https://a.example/X", False),
        ("https://a.example/?x=1", "https://a.example/?X=1", False),
        ("https://a.example", "http://a.example", False),
        ("https://a.example:80", "https://a.example", False),
        ("https://a.example", "https://b.a.example", False),
        ("https://a.example", "https://a.example@b.example", False),
        ("https://a.example", "https://user@a.example", False),
        ("https://a.example:99999", "https://a.example", False),
        ("", "", True),
        ("", "https://a.example", False),
        ("nonsense", "NONSENSE", False),
    ],
)
def test_what_leads_to_the_same_place_is_the_same_address(one: str, other: str, same: bool) -> None:
    assert is_same_address(one, other) is same
    assert is_same_address(other, one) is same


def test_the_present_address_in_another_spelling_is_refused(
    as_administrator: Client, service: StubService
) -> None:
    service.callback = f'"{AFTER}"'
    answer = review(as_administrator, AFTER.replace("https://", "HTTPS://").replace(".com", ".COM:443"))
    assert answer.status_code == 422
    assert "has this address already" in answer.content.decode()


@pytest.mark.parametrize(
    ("public", "warned"),
    [
        ("", False),
        ("https://pay.example.com", False),
        ("https://pay.example.com/webhooks", False),
        ("https://pay.example.com/web", True),
        ("https://countersign.example.com", True),
    ],
)
def test_an_address_that_is_not_ours_is_warned_of(settings: Settings, public: str, warned: bool) -> None:
    settings.PUBLIC_URL = public
    assert bool(KINDS["callback_url"].cautions(sample())) is warned


def test_two_people_set_it_against_the_service(
    administrator: User, checker: User, sandbox: SandboxProcess
) -> None:
    operation = sent(administrator, checker, previous="")
    assert operation.status == Status.PROCESSING
    assert services.confirm_operation(operation.pk).status == Status.SUCCEEDED


def test_prepare_again_fills_the_form_with_the_same(administrator: User, as_administrator: Client) -> None:
    operation = factories.of_kind("callback_url", sample(), administrator)
    services.cancel_operation(operation.pk, actor=administrator)
    form = as_administrator.get(f"{ADDRESS}?copy={operation.pk}").context["form"]
    assert form["url"].value() == AFTER
