"""Lines of the log: no secret in the message, its arguments, or the traceback, however it is written."""

import logging
import sys
from collections.abc import Callable

import pytest
from django.conf import settings as configured
from pytest_django import Settings

from backoffice.core.logs import RedactingFormatter, redact_secrets
from backoffice.core.web import request_context

CANARY = "canary 7f3a, 482913"
WORD = "canary-7f3a"
logger = logging.getLogger("backoffice.tests")

Lines = Callable[[], str]


@pytest.mark.parametrize(
    "text",
    [
        f"otp={WORD}",
        f"OTP: {WORD}",
        f"token={WORD}",
        f"Token: {WORD}",
        f"?currency=NGN&token={WORD}&page=2",
        f"X-Api-Key: {WORD}",
        f"api_key={WORD};",
        f"apikey = {WORD})",
        f"COUNTERSIGN_SECRET_KEY={WORD}",
        f"countersign_session={WORD}; Path=/",
        f"otpauth://totp/Countersign:ada?secret={WORD}&issuer=Countersign",
        f'{{"otp": "{CANARY}", "amount": "1.00"}}',
        f'{{"token": "{CANARY}", "amount": "1.00"}}',
        f"{{'password': '{CANARY}'}}",
        f"{{'new_password': ['{CANARY}'], 'next': ['']}}",
        f"<QueryDict: {{'otp': ['{WORD}']}}>",
        f"<QueryDict: {{'token': ['{WORD}']}}>",
        f'b\'{{"token": "{CANARY}"}}\'',
        rf'"{{\"otp\": \"{CANARY}\", \"otpType\": \"totp\"}}"',
        f'{{"seed":"{CANARY}"}}',
    ],
)
def test_the_value_after_the_name_of_a_secret_is_redacted(text: str) -> None:
    safe = redact_secrets(text)
    assert "•••" in safe
    assert not [piece for piece in ("canary", "7f3a", "482913") if piece in safe]


@pytest.mark.parametrize(
    "text",
    [
        "POST /v2/balance/withdraw answered 422",
        "Operation W-7Q2K9F is not sent yet: the service cannot be read (ReadFailedError)",
        "Invalid OTP token",
        "otpType is missing; tokens of 6 digits are accepted",
        '{"amount": "250000.00", "accountNumber": "0123456789"}',
        "2 other sessions ended",
    ],
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    assert redact_secrets(text) == text


@pytest.mark.parametrize("name", ["otp", "token"])
def test_fields_beside_a_secret_are_unchanged(name: str) -> None:
    text = f'{{"currency": "NGN", "{name}": "{CANARY}", "amount": "1.00"}}'
    assert redact_secrets(text) == f'{{"currency": "NGN", "{name}": •••, "amount": "1.00"}}'


@pytest.mark.parametrize(
    "name",
    [
        "GATEWAY_API_KEY",
        "SECRET_KEY",
        "WEBHOOK_SECRET",
        "AUDIT_CHECKPOINT_TOKEN",
        "FILES_SECRET_KEY",
        "EMAIL_HOST_PASSWORD",
    ],
)
def test_a_known_secret_is_redacted_anywhere(settings: Settings, name: str) -> None:
    setattr(settings, name, WORD)
    assert redact_secrets(f"refused by the service: <{WORD}>") == "refused by the service: <•••>"


def test_an_earlier_secret_key_is_redacted(settings: Settings) -> None:
    settings.SECRET_KEY_FALLBACKS = [WORD, "another-of-before"]
    assert redact_secrets(f"{WORD} another-of-before") == "••• •••"


PASSWORD, ENCODED = "canary/7f3a", "canary%2F7f3a"


@pytest.mark.parametrize("setting", ["DATABASES", "MIGRATION_DATABASE", "CELERY_BROKER_URL"])
def test_the_password_of_a_server_is_redacted_as_it_is_and_as_an_address_has_it(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    database = {"PASSWORD": PASSWORD}
    values = {
        "DATABASES": {"default": database},
        "MIGRATION_DATABASE": database,
        "CELERY_BROKER_URL": f"redis://u:{ENCODED}@redis:6379/0",
    }
    monkeypatch.setattr(configured, setting, values[setting])
    assert redact_secrets(f"{PASSWORD} {ENCODED} {{'u': 1}}") == "••• ••• {'u': 1}"


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("postgres://u:secret@db/name", "postgres://u:•••@db/name"),
        ("cannot reach redis://:x@redis:6379/0", "cannot reach redis://:•••@redis:6379/0"),
        ("see https://pay.example:8443/a@b", "see https://pay.example:8443/a@b"),
    ],
)
def test_the_password_of_an_address_is_redacted_however_short(address: str, safe: str) -> None:
    assert redact_secrets(address) == safe


def test_a_short_password_redacts_no_ordinary_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "DATABASES", {"default": {"PASSWORD": "guest"}})
    assert redact_secrets("a guest list") == "a guest list"


@pytest.mark.parametrize("name", ["ENCRYPTION_KEYS", "AUDIT_CHECKPOINT_KEYS"])
def test_a_listed_key_is_redacted_without_its_id(settings: Settings, name: str) -> None:
    listed = ["2026:" + "N" * 43 + "=", "2025:" + "O" * 43 + "="]
    setattr(settings, name, listed)
    for item in listed:
        assert item.partition(":")[2] not in redact_secrets(f"cannot use {item} as a key")


@pytest.mark.parametrize("after", ["", "/", "?lang=fr", '" 404'])
def test_a_one_time_link_is_redacted(after: str) -> None:
    assert (
        redact_secrets(f"Not Found: /account/set-up/{WORD}{after}")
        == f"Not Found: /account/set-up/•••{after}"
    )


def test_an_empty_secret_redacts_nothing(settings: Settings) -> None:
    settings.GATEWAY_API_KEY = ""
    assert redact_secrets("as it was") == "as it was"


def test_arguments_are_redacted_like_the_message(log_lines: Lines) -> None:
    logger.info("sent %s and %r", f"token={WORD}", {"password": CANARY})
    assert "canary" not in log_lines()
    assert "sent token=•••" in log_lines()


def test_a_traceback_is_redacted_with_its_cause_and_notes(settings: Settings, log_lines: Lines) -> None:
    settings.GATEWAY_API_KEY = WORD
    try:
        fail()
    except RuntimeError:
        logger.exception("It failed")
    lines = log_lines()
    assert "canary" not in lines
    assert "RuntimeError: refused •••" in lines
    assert "ValueError: body was {'token': •••}" in lines
    assert "the key was •••" in lines


def fail() -> None:
    try:
        raise ValueError(f"body was {{'token': '{CANARY}'}}")
    except ValueError as exc:
        error = RuntimeError(f"refused {WORD}")
        error.add_note(f"the key was {WORD}")
        raise error from exc


def test_a_traceback_cached_by_another_handler_is_redacted(settings: Settings, log_lines: Lines) -> None:
    settings.GATEWAY_API_KEY = WORD
    try:
        fail()
    except RuntimeError:
        record = logger.makeRecord("x", logging.ERROR, __file__, 1, "It failed", (), sys.exc_info())
    careless = logging.Formatter().format(record)
    assert WORD in careless
    logger.handle(record)
    assert "canary" not in log_lines()
    assert "RuntimeError" in log_lines()


def test_a_log_call_with_mismatched_arguments_does_not_raise(
    log_handler: logging.Handler, log_lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)  # which would end as a note on stderr
    log_handler.handle(logger.makeRecord("x", logging.INFO, __file__, 1, "%d rows", ("many",), None))
    logger.info("and on it goes")
    assert log_lines().splitlines()[-1].endswith("and on it goes")


def test_the_request_id_is_on_every_line_and_a_dash_without_one(log_lines: Lines) -> None:
    with request_context.call_context(request_id="3f2a"):
        logger.info("inside")
    logging.getLogger("somebody.elses").warning("outside")
    inside, outside = log_lines().splitlines()
    assert inside.endswith("INFO backoffice.tests [3f2a] inside")
    assert outside.endswith("WARNING somebody.elses [-] outside")


@pytest.mark.parametrize(
    "name", ["", "django", "django.request", "payments_gateway", "celery", "waitress", "x.y"]
)
def test_every_logger_uses_the_redacting_handler(log_handler: logging.Handler, name: str) -> None:
    assert isinstance(log_handler.formatter, RedactingFormatter)
    found: logging.Logger | None = logging.getLogger(name)
    while found is not None:
        assert [handler for handler in found.handlers if writes(handler)] in ([], [log_handler])
        assert found.propagate
        found = found.parent


def writes(handler: logging.Handler) -> bool:
    """Whether it is one of the program's, and not pytest's, that brings lines anywhere."""
    return not isinstance(handler, logging.NullHandler) and not type(handler).__module__.startswith("_pytest")
