"""Canaries are planted, the main job is done with all its failures, and every place that keeps anything is searched."""

import base64
import json
import logging
import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as product_settings
from django.db import connection, transaction
from django.test import Client
from pytest_django import Settings

from backoffice.accounts import services as accounts
from backoffice.accounts.models import AuthenticatorDevice, StaffSession, User
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import SessionStore
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import services
from backoffice.operations.models import Operation, Release
from backoffice.operations.states import Status
from tests import factories, stub_service
from tests.accounts import steps
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)

HOLDER = {"accountname": "ADA CHIDINMA OBI", "accountnumber": "9990001112"}
# Where a secret is shown on purpose, to the person whom it belongs to, once.
SHOWN_ONCE = {"/account/authenticator/": {"seed", "recovery code"}}


@dataclass
class Canaries:
    """The secrets that are planted, in every form in which somebody might write them down."""

    api_key: str = field(default_factory=lambda: f"key-{secrets.token_hex(12)}")
    token: str = field(default_factory=lambda: f"token-{secrets.token_hex(12)}")
    password: str = field(default_factory=lambda: f"pass phrase {secrets.token_hex(12)}")
    seed: bytes = b""
    recovery_codes: list[str] = field(default_factory=list)

    def forms(self) -> Iterator[tuple[str, bytes]]:
        yield from (("API key", self.api_key.encode()), ("token", self.token.encode()))
        yield from (("password", self.password.encode()), ("password", self.password.split()[-1].encode()))
        if self.seed:
            yield from (("seed", form) for form in (self.seed, self.seed.hex().encode()))
            yield "seed", base64.b32encode(self.seed)
        for code in self.recovery_codes:
            yield from (("recovery code", form.encode()) for form in (code, code.replace("-", "")))

    def found_in(self, content: bytes) -> set[str]:
        """The names of the canaries that are there, grouped like "ABCD EFGH" or not, in whatever case."""
        folded = content.lower()
        readings = (folded, folded.replace(b" ", b""))
        return {name for name, form in self.forms() if any(form.lower() in reading for reading in readings)}


@pytest.fixture
def canaries(settings: Settings) -> Canaries:
    planted = Canaries()
    settings.GATEWAY_API_KEY = planted.api_key
    return planted


@pytest.fixture
def service(settings: Settings, canaries: Canaries) -> Iterator[StubService]:
    """A service that repeats every secret in all that it says."""
    with stub_service.running() as stub:
        settings.GATEWAY_URL = stub.url
        answer_with(stub, 200, {"data": {"transactionId": "T-1"}}, canaries)
        yield stub


def answer_with(stub: StubService, status: int, body: object, canaries: Canaries) -> None:
    """Answer a withdrawal like this, with the secrets in it, and a question for an account with its holder."""
    echo = f"key {canaries.api_key} token {canaries.token}"
    text = body.format(echo=echo) if isinstance(body, str) else json.dumps(body).replace("{echo}", echo)

    def answer() -> stub_service.Answer:
        is_withdrawal = "amount" in json.loads(stub.posts[-1])
        return (status, text) if is_withdrawal else (200, json.dumps({"data": HOLDER}))

    stub.answer_post = answer


class Reader(Client):
    """A browser that remembers every answer, header by header."""

    def __init__(self, pages: list[tuple[str, bytes]], **defaults: Any) -> None:
        super().__init__(raise_request_exception=False, **defaults)
        self.pages = pages

    def request(self, **request: Any) -> Any:
        answer: Any = super().request(**request)
        head = "\n".join(f"{name}: {value}" for name, value in answer.items()) + answer.cookies.output()
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        self.pages.append((request["PATH_INFO"], head.encode() + b"\n" + body))
        return answer


@dataclass
class Sinks:
    """Every place that keeps what it is told."""

    canaries: Canaries
    pages: list[tuple[str, bytes]]
    log_lines: Callable[[], str]
    caplog: pytest.LogCaptureFixture

    def leaks(self) -> set[tuple[str, str]]:
        """Place and name of every canary that is where it must not be."""
        places = [*database(), *files(), *self.logs(), *self.pages]
        return {
            (place, name)
            for place, content in places
            for name in self.canaries.found_in(content) - SHOWN_ONCE.get(place, set())
        }

    def logs(self) -> Iterator[tuple[str, bytes]]:
        """What the handler wrote, and the records themselves as a careless handler would write them."""
        yield "standard error", self.log_lines().encode()
        plain = logging.Formatter("%(message)s")
        for record in self.caplog.records:
            yield f"record of {record.name}", f"{plain.format(record)} {record.args!r}".encode()


def database() -> Iterator[tuple[str, bytes]]:
    """Every value of every column of every table, and what the sessions hold inside of their signature."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608 - its own table names
            columns = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                yield from (
                    (f"{table}.{name}", as_bytes(value)) for name, value in zip(columns, row, strict=True)
                )
    for session in StaffSession.objects.all():
        yield "inside of a session", repr(SessionStore().decode(session.session_data)).encode()


def as_bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def files() -> Iterator[tuple[str, bytes]]:
    """Every file of the data folder: messages to workers, and on SQLite the database with all that it ever wrote."""
    for path in Path(product_settings.DATA_DIR).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield path.name, content
            if path.parent.name == "messages":
                yield f"body of {path.name}", base64.b64decode(json.loads(content)["body"])


@pytest.fixture
def sinks(canaries: Canaries, log_lines: Callable[[], str], caplog: pytest.LogCaptureFixture) -> Sinks:
    caplog.set_level(logging.DEBUG)
    return Sinks(canaries, [], log_lines, caplog)


@pytest.fixture
def as_checker(sinks: Sinks, canaries: Canaries) -> Reader:
    """An approver who came by all steps, with every mistake on the way."""
    user = accounts.create_staff(
        "amara@countersign.example",
        full_name="Amara Okafor",
        password=canaries.password,
        roles=[Role.APPROVER, Role.AUDITOR],
    )
    browser = Reader(sinks.pages)
    steps.give_password(browser, user, canaries.password + " ")
    steps.give_password(browser, user, canaries.password)
    browser.get("/account/authenticator/")
    device = steps.authenticator(user, confirmed=False)
    canaries.seed = device.totp().key
    canaries.recovery_codes = browser.post(
        "/account/authenticator/", {"code": steps.code_of(device)}
    ).context["codes"]
    browser.post("/account/recovery-codes/kept/")
    browser.post("/account/sign-out/")
    return sign_in_with_a_recovery_code(browser, user, canaries)


def sign_in_with_a_recovery_code(browser: Reader, user: User, canaries: Canaries) -> Reader:
    steps.give_password(browser, user, canaries.password)
    steps.give_code(browser, steps.wrong_code(steps.authenticator(user)))
    steps.unlock(user)
    assert steps.give_code(browser, canaries.recovery_codes[0])["Location"] == "/"
    return browser


@pytest.fixture
def as_maker(sinks: Sinks, maker: User) -> Reader:
    browser = Reader(sinks.pages)
    factories.sign_in(browser, maker)
    return browser


def prepare(browser: Reader) -> Operation:
    """A withdrawal, by its form and its review."""
    address = "/operations/prepare/withdrawal/"
    typed = {
        "submission": str(uuid.uuid4()),
        "currency": "NGN",
        "amount": "250000.00",
        "bank_code": "044",
        "account_number": HOLDER["accountnumber"],
        "typed_name": HOLDER["accountname"],
        "repeat_meant": "on",
        "repeat_reason": str(uuid.uuid4()),
    }
    digest = browser.post(address, {**typed, "step": "review"}).context["digest"]
    browser.post(address, {**typed, "step": "prepare", "digest": digest})
    return Operation.objects.latest("prepared_at")


def give_the_word(
    browser: Reader, operation: Operation, action: str, canaries: Canaries, **changes: str
) -> Any:
    """Press a button that takes the service's token."""
    values = {"digest": operation.digest, "token": canaries.token, **changes}
    return browser.post(f"/operations/{operation.pk}/{action}/", values)


def look_around(browser: Reader, operation: Operation) -> None:
    """Open everything that shows what happened, and take the reports away."""
    for address in (
        f"/operations/{operation.pk}/",
        f"/operations/{operation.pk}/live/",
        *("/", "/balances/", "/operations/", "/audit/", "/reports/", "/account/", "/account/password/"),
        *("/reports/operations.csv", "/reports/transactions.csv", "/reports/audit-log.csv"),
    ):
        assert browser.get(address).status_code in {200, 302, 502}, address


def status_of(operation: Operation) -> str:
    return Operation.objects.get(pk=operation.pk).status


def test_while_the_token_waits_it_is_nowhere_to_be_read(
    service: StubService, sinks: Sinks, as_maker: Reader, as_checker: Reader, canaries: Canaries
) -> None:
    operation = prepare(as_maker)
    assert give_the_word(as_checker, operation, "approve-and-send", canaries).status_code == 302
    release = Release.objects.get(operation=operation)
    assert release.sealed_token
    look_around(as_checker, operation)
    assert sinks.leaks() == set()
    services.send_operation(operation.pk)
    assert canaries.token in service.posts[-1]
    assert not Release.objects.exists()
    assert sinks.leaks() == set()


ANSWERS: list[tuple[int, object, Status]] = [
    (200, {"data": {"transactionId": "T-1", "note": "{echo}"}}, Status.PROCESSING),
    (400, {"success": False, "message": "Invalid OTP token: {echo}", "errors": ["{echo}"]}, Status.APPROVED),
    (422, {"success": False, "message": "Insufficient funds for {echo}"}, Status.FAILED),
    (500, {"message": "Internal error: {echo}"}, Status.UNKNOWN),
    (502, "<html>{echo}</html>", Status.UNKNOWN),
    (200, "{echo} is no JSON", Status.UNKNOWN),
]


def test_whatever_the_service_repeats_is_kept_nowhere(
    service: StubService, sinks: Sinks, as_maker: Reader, as_checker: Reader, canaries: Canaries
) -> None:
    for status, body, ends in ANSWERS:
        service.records = "[]"
        operation = prepare(as_maker)
        give_the_word(as_checker, operation, "approve-and-send", canaries)
        answer_with(service, status, body, canaries)
        services.send_operation(operation.pk)
        assert status_of(operation) == ends
        service.records = f"{canaries.api_key} is no list"
        services.confirm_operation(operation.pk)
        look_around(as_checker, operation)
    assert sinks.leaks() == set()


def test_a_refused_form_does_not_come_back_with_its_secrets(
    service: StubService, sinks: Sinks, as_maker: Reader, as_checker: Reader, canaries: Canaries
) -> None:
    operation = prepare(as_maker)
    stale = give_the_word(as_checker, operation, "approve-and-send", canaries, digest="of something else")
    own = give_the_word(as_maker, operation, "approve-and-send", canaries)
    too_soon = give_the_word(as_checker, operation, "release", canaries)
    wrong_password = as_checker.post(
        "/account/password/", {"old_password": canaries.password + " ", "new_password": canaries.password}
    )
    assert [answer.status_code for answer in (stale, own, too_soon, wrong_password)] == [422, 403, 422, 422]
    assert Entry.objects.filter(action=Action.OPERATION_REFUSED).count() == 2
    assert sinks.leaks() == set()


def test_an_error_of_our_own_shows_and_writes_nothing(
    service: StubService,
    sinks: Sinks,
    as_maker: Reader,
    as_checker: Reader,
    canaries: Canaries,
    settings: Settings,
) -> None:
    operation = prepare(as_maker)
    settings.ENCRYPTION_KEYS = ["broken"]
    assert give_the_word(as_checker, operation, "approve-and-send", canaries).status_code == 500
    assert as_checker.post("/account/second-factor/", {"code": "123456"}).status_code == 500
    assert sinks.log_lines().count("ImproperlyConfigured: COUNTERSIGN_ENCRYPTION_KEYS") == 2
    assert status_of(operation) == Status.PENDING
    assert sinks.leaks() == set()


def test_the_search_would_find_every_canary_in_every_place(
    sinks: Sinks, as_checker: Reader, canaries: Canaries
) -> None:
    forms = {name: form.decode("latin-1") for name, form in canaries.forms()}
    text = " ".join(forms.values())
    plant(text, as_checker)
    expected = {
        "record of backoffice",
        "/operations/",
        "audit_entry.detail",
        "accounts_authenticatordevice.sealed_seed",
        "inside of a session",
        "leak.txt",
    }
    leaks = sinks.leaks()
    Path(product_settings.DATA_DIR, "leak.txt").unlink()
    assert {(place, name) for place in expected for name in forms} <= leaks
    assert {name for place, name in leaks if place == "standard error"} == forms.keys() - {"API key"}


def plant(text: str, browser: Reader) -> None:
    """Betray it to everybody who listens."""
    logging.getLogger("backoffice").info("It was %s", text)
    browser.get("/operations/", {"text": text})
    with transaction.atomic():
        audit.record(Action.LOG_VERIFIED, actor=None, target="the audit log", fault=text)
    AuthenticatorDevice.objects.update(sealed_seed=text.encode())
    session: Any = browser.session
    session["leak"] = text
    session.save()
    Path(product_settings.DATA_DIR, "leak.txt").write_text(text)
