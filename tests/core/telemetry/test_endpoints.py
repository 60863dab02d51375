"""`/livez`, `/readyz`, and what every page, `/metrics` and both say while the database is away."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery
from django.conf import settings as configured
from django.core.cache import cache
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.urls.resolvers import RoutePattern
from kombu.exceptions import OperationalError
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.celery import broker_options
from backoffice.core import credentials
from backoffice.core.models import GatewayKey
from backoffice.core.telemetry import readiness
from backoffice.core.telemetry.readiness import BrokerAwayError, Part, State

READY = {"database": "ok", "migrations": "ok", "keys": "ok", "broker": "ok"}


@pytest.fixture(autouse=True)
def fresh_readiness() -> Iterator[None]:
    cache.delete("readiness")
    credentials.clear_key_cache()
    yield
    cache.delete("readiness")
    credentials.clear_key_cache()


@pytest.fixture
def broken_database(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    """No connection can be opened, as on a server that is gone."""
    connection.close()
    is_file = connection.vendor == "sqlite"
    name, value = ("NAME", str(tmp_path / "no-such-folder" / "x")) if is_file else ("PORT", "1")
    with monkeypatch.context() as patched:
        patched.setitem(connection.settings_dict, name, value)
        yield
        connection.close()


@pytest.fixture
def only_reading(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connections, new ones too, that the database lets only read."""
    connection.close()
    is_file = connection.vendor == "sqlite"
    reads = (
        {"init_command": "PRAGMA query_only = on"}
        if is_file
        else {"options": "-c default_transaction_read_only=on"}
    )
    options = {**connection.settings_dict["OPTIONS"], **reads}
    with monkeypatch.context() as patched:
        patched.setitem(connection.settings_dict, "OPTIONS", options)
        yield
        connection.close()


def test_livez_needs_no_database_no_host_name_and_no_tls(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get("/livez", headers={"Host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes_only_read(client: Client, path: str) -> None:
    answer = client.post(path)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


@pytest.mark.django_db
def test_readyz_is_200_if_everything_is_there(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = client.get("/readyz", headers={"Host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "parts": READY})


@pytest.mark.any_engine
def test_a_database_that_accepts_no_writes_is_not_ready(client: Client, only_reading: None) -> None:
    """Such as a primary that became a standby: every page answers 503 then."""
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]["database"]) == (503, "failed")


@pytest.mark.any_engine
@pytest.mark.django_db(transaction=True)
def test_a_connection_to_what_became_a_standby_is_replaced(client: Client) -> None:
    with connection.cursor() as cursor:
        is_file = connection.vendor == "sqlite"
        cursor.execute(f"{'PRAGMA query_only' if is_file else 'SET default_transaction_read_only'} = on")
    assert client.get("/readyz").json()["parts"]["database"] == "ok"


@pytest.mark.django_db
def test_readyz_names_missing_migrations(client: Client) -> None:
    MigrationRecorder(connection).record_unapplied("operations", "0001_squashed_0015_recipients")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not_ready", "parts": READY | {"migrations": "failed"}}


@pytest.mark.django_db
def test_readyz_names_an_api_key_that_cannot_be_decrypted(client: Client) -> None:
    key = GatewayKey(
        name="x", state=GatewayKey.State.IN_USE, since="2026-01-01T00:00Z", encrypted_key=b"gone\0x"
    )
    key.save()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"] == READY | {"keys": "failed"}


@pytest.mark.django_db
def test_readyz_names_unusable_encryption_keys(client: Client, settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = ["broken:secret-of-the-key"]
    answer = client.get("/readyz")
    assert answer.json()["parts"] == READY | {"keys": "failed"}
    assert "secret-of-the-key" not in answer.content.decode()


@pytest.mark.django_db
def test_a_broker_that_is_away_is_named_and_can_be_excluded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise BrokerAwayError from OperationalError("redis://user:password@host refused")

    monkeypatch.setattr(readiness, "check_broker", refuse)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["parts"]) == (503, READY | {"broker": "failed"})
    assert "password" not in answer.content.decode()
    assert client.get("/readyz", {"exclude": "broker"}).status_code == 200
    assert client.get("/readyz", {"exclude": "keys"}).status_code == 503


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["redis://127.0.0.1:1/0", "amqp://127.0.0.1:1//"])
def test_a_real_broker_that_refuses_connections_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str
) -> None:
    app = Celery("elsewhere", broker=address, set_as_current=False)
    app.conf.update(broker_transport_options=broker_options(address, tmp_path), broker_connection_timeout=1)
    monkeypatch.setattr(readiness, "app", app)
    readiness.broker_errors.cache_clear()
    assert readiness.part_states()[Part.BROKER] == State.FAILED
    readiness.broker_errors.cache_clear()


@pytest.mark.django_db
def test_many_probes_are_one_check_a_second(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.get("/readyz")
    with django_assert_num_queries(0):
        client.get("/readyz")


def test_without_the_database_readyz_names_it_and_livez_works(client: Client, broken_database: None) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"] == READY | dict.fromkeys(["migrations", "keys"], "unknown") | {
        "database": "failed"
    }
    assert client.get("/livez").status_code == 200


def signed_in() -> Client:
    client = Client(raise_request_exception=False)
    client.cookies[configured.SESSION_COOKIE_NAME] = "a" * 32
    return client


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(
    "address", ["/", "/operations/", "/settings/system/", "/account/sign-in/", "/no-such-page/", "/reports/"]
)
def test_without_the_database_every_page_is_a_503_that_says_so(
    broken_database: None, address: str, language: str
) -> None:
    answer = signed_in().get(address, headers={"Accept-Language": language})
    assert answer.status_code == 503
    assert (answer["Retry-After"], answer["Cache-Control"]) == ("10", "no-store")
    html = answer.content.decode()
    assert f'<html lang="{language}">' in html
    assert "Countersign" in html
    assert "Traceback" not in html
    assert "Error" not in html
    if language == "en":
        assert "<h1>Database not available</h1>" in html


def addresses(patterns: list[URLPattern | URLResolver], prefix: str = "/") -> Iterator[str]:
    """An address of each view, as far as an address has no regular expression of its own."""
    for pattern in patterns:
        if not isinstance(pattern.pattern, RoutePattern):
            continue
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, route)
        else:
            with_ids = re.sub(r"<uuid:\w+>", "00000000-0000-4000-8000-000000000000", route)
            yield re.sub(r"<[\w:]+>", "7", with_ids)


def test_without_the_database_every_address_is_a_503(broken_database: None) -> None:
    client, others = signed_in(), {}
    found = sorted(set(addresses(get_resolver().url_patterns)))
    assert len(found) > 150
    for address in found:
        answer = client.get(address)
        if answer.status_code != 503 or b"Database not available" not in answer.content:
            others[address] = answer.status_code
    assert others == {}


def test_without_the_database_a_submitted_form_is_a_503(broken_database: None) -> None:
    factory = signed_in()
    answer = factory.post(reverse("accounts:sign_in"), {"username": "x", "password": "y"})
    assert answer.status_code == 503


def test_without_the_database_a_delivery_is_refused_with_503(
    broken_database: None, settings: Settings
) -> None:
    settings.WEBHOOK_SECRET = "s" * 32
    answer = signed_in().post(f"/hooks/{'s' * 32}/", {"data": {}}, content_type="application/json")
    assert answer.status_code == 503


def test_without_the_database_metrics_are_a_503_in_plain_text(broken_database: None) -> None:
    answer = Client(raise_request_exception=False).get("/metrics")
    assert (answer.status_code, answer["Content-Type"]) == (503, "text/plain")
    assert answer.content == b"database not available\n"


@pytest.mark.django_db
def test_another_error_remains_a_500(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("backoffice.operations.monitoring.metrics.render_metrics", fail)
    answer = Client(raise_request_exception=False).get("/metrics")
    assert answer.status_code == 500
    assert "Something went wrong" in answer.content.decode()
