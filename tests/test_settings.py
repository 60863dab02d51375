"""Settings: the environments in which the process starts, and those it refuses, naming the setting."""

import base64
import contextlib
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from backoffice import settings as product_settings
from backoffice.core.management.setting_checks import check_names
from payments_gateway.sandbox import API_KEY as SANDBOX_API_KEY
from tests.core.environments import (
    DEMO,
    PRODUCTION,
    REHEARSAL,
    SANDBOX,
    SECRETS,
    STAGING,
    Start,
    settings_in,
    starts_in,
)

StartProcess = Callable[..., "subprocess.CompletedProcess[str]"]
ALL_ZERO_KEY = base64.b64encode(bytes(32)).decode()
DEVELOPMENT_SECRET = "development-only-" + "0" * 48


def _key(raw: bytes) -> str:
    return f"first:{base64.b64encode(raw).decode()}"


STARTS = {
    "sandbox, nothing set": SANDBOX,
    "sandbox, debug": {"COUNTERSIGN_DEBUG": "true"},
    "sandbox, by name and IPv6": {"COUNTERSIGN_GATEWAY_URL": "http://[::1]:9/v2"},
    "demo": DEMO,
    "staging": STAGING,
    "staging, named in another way": {
        **STAGING,
        "COUNTERSIGN_GATEWAY_STAGING_HOST_MARKER": "Preview",
        "COUNTERSIGN_GATEWAY_URL": "https://preview.service.example/v2",
        "COUNTERSIGN_GATEWAY_URL_V4": "https://preview.service.example/v4",
    },
    "rehearsal": REHEARSAL,
    "production": PRODUCTION,
    "production, several machines": {
        **PRODUCTION,
        "COUNTERSIGN_SINGLE_MACHINE": "no",
        "COUNTERSIGN_DATABASE_URL": "postgres://countersign@db.example/countersign?sslmode=verify-full",
        "COUNTERSIGN_BROKER_URL": "amqps://broker.example//",
    },
    "production, database and broker on this machine": {
        **PRODUCTION,
        "COUNTERSIGN_SINGLE_MACHINE": "false",
        "COUNTERSIGN_DATABASE_URL": "postgres://countersign@127.0.0.1/countersign",
        "COUNTERSIGN_BROKER_URL": "redis://localhost/0",
    },
    "production, containers beside each other": {
        **PRODUCTION,
        "COUNTERSIGN_SINGLE_MACHINE": "true",
        "COUNTERSIGN_DATABASE_URL": "postgres://countersign@postgres/countersign",
        "COUNTERSIGN_BROKER_URL": "redis://redis:6379/0",
    },
    "production, database over a socket": {
        **PRODUCTION,
        "COUNTERSIGN_DATABASE_URL": "postgres://countersign@/countersign?host=/run/postgresql",
    },
    "production, provider through a network of one's own": {
        **PRODUCTION,
        "COUNTERSIGN_GATEWAY_URL": "https://10.1.2.3/v2",
        "COUNTERSIGN_GATEWAY_PRIVATE_ADDRESSES": "true",
    },
    "production, mail and syslog over TLS": {
        **PRODUCTION,
        "COUNTERSIGN_EMAIL_URL": "smtp+tls://user:secret@mail.example:587",
        "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS": "syslog+tls://log.example:6514,syslog+unix:///dev/log",
    },
    "production, mail and syslog on this machine": {
        **PRODUCTION,
        "COUNTERSIGN_EMAIL_URL": "smtp://localhost:25",
        "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS": "syslog+udp://127.0.0.1:514",
    },
    "production, an earlier secret": {
        **PRODUCTION,
        "COUNTERSIGN_SECRET_KEY_FALLBACKS": SECRETS["COUNTERSIGN_SECRET_KEY"][::-1],
    },
}

# Passwords that have to be encoded, and a scheme that no database has.
UNREADABLE = ("postgres://u:canary/7f3a", "postgres://u:canary:7f3a/x", "unknown://u:canary7f3a")
# Refused environments: a valid one, the one wrong value, and the setting named in the message.
REFUSED = [
    (SANDBOX, "ENVIRONMENT", "live"),
    (SANDBOX, "ENVIRONMENT", "Production"),
    (SANDBOX, "ENVIRONMENT", ""),
    (SANDBOX, "GATEWAY_URL", "https://api.service.example/v2"),
    (SANDBOX, "GATEWAY_URL", "http://127.0.0.1.service.example/v2"),
    (SANDBOX, "GATEWAY_URL", "http://127.0.0.1@service.example/v2"),
    (SANDBOX, "GATEWAY_URL_V4", "https://api.service.example/v4"),
    (DEMO, "ALLOWED_HOSTS", "countersign.example"),
    (DEMO, "ALLOWED_HOSTS", "localhost,*"),
    (DEMO, "GATEWAY_URL", "https://api.service.example/v2"),
    (REHEARSAL, "GATEWAY_URL", "https://api.service.example/v2"),
    (REHEARSAL, "SECRET_KEY", None),
    (REHEARSAL, "ENCRYPTION_KEYS", None),
    (REHEARSAL, "DEBUG", "true"),
    (REHEARSAL, "PUBLIC_URL", "http://localhost"),
    (STAGING, "NEW_RIGHTS_WAIT_HOURS", "0"),
    (STAGING, "DEMO", "true"),
    (STAGING, "DEBUG", "true"),
    (STAGING, "FAULT_POINT", "send.claimed=kill"),
    (PRODUCTION, "FAULT_POINT", "send.claimed=stop"),
    (STAGING, "SECRET_KEY", None),
    (STAGING, "SECRET_KEY", ""),
    (STAGING, "ENCRYPTION_KEYS", None),
    (STAGING, "GATEWAY_API_KEY", None),
    (STAGING, "GATEWAY_URL", None),
    (STAGING, "GATEWAY_URL", "http://staging.service.example/v2"),
    (STAGING, "GATEWAY_URL", "https://api.service.example/v2"),
    (STAGING, "GATEWAY_URL_V4", "https://api.service.example/v4"),
    *(
        (PRODUCTION, "SECOND_APPROVAL_ABOVE", wrong)
        for wrong in (
            "ngn=1",
            "NGN",
            "NGN=",
            "NGN=1e9",
            "NGN=-1",
            "NGN=NaN",
            "NGN=10_000",
            "NGN=10 000",
            "EUR=1",
            "NGN=1,NGN=2",
            "10000000",
        )
    ),
    (PRODUCTION, "DEMO", "true"),
    (PRODUCTION, "DEBUG", "true"),
    (PRODUCTION, "BREAK_GLASS_RESTRICTION_HOURS", "23"),
    (STAGING, "BREAK_GLASS_RESTRICTION_HOURS", "0"),
    (PRODUCTION, "SECRET_KEY", None),
    (PRODUCTION, "SECRET_KEY", " "),
    (PRODUCTION, "ENCRYPTION_KEYS", None),
    (PRODUCTION, "ENCRYPTION_KEYS", f"another-name:{ALL_ZERO_KEY}"),
    (PRODUCTION, "ENCRYPTION_KEYS", f"first:{'B' * 43}=,old:{ALL_ZERO_KEY}"),
    (PRODUCTION, "SECRET_KEY", "too-short-Zx3mB9rT1yWfUe8sLd2HnPcGj5"),
    (PRODUCTION, "SECRET_KEY", "ab" * 40),
    (PRODUCTION, "SECRET_KEY", "django-insecure-qK7v0Zx3mB9rT1yWfUe8sLd2HnPcGj5aB4c"),
    (PRODUCTION, "SECRET_KEY_FALLBACKS", "short"),
    (PRODUCTION, "SECRET_KEY_FALLBACKS", DEVELOPMENT_SECRET),
    (STAGING, "SECRET_KEY_FALLBACKS", f"{SECRETS['COUNTERSIGN_SECRET_KEY']},{'x' * 60}"),
    (PRODUCTION, "ENCRYPTION_KEYS", _key(b"B" * 32)),
    (PRODUCTION, "ENCRYPTION_KEYS", _key(b"a passphrase of thirty-two bytes")),
    (PRODUCTION, "ENCRYPTION_KEYS", f"{SECRETS['COUNTERSIGN_ENCRYPTION_KEYS']},old:{ALL_ZERO_KEY}"),
    (PRODUCTION, "AUDIT_CHECKPOINT_KEYS", _key(bytes(32))),
    (PRODUCTION, "METRICS_TOKEN", "s" * 32),
    (PRODUCTION, "METRICS_TOKEN", "metrics-token-changeme"),
    (PRODUCTION, "WEBHOOK_SECRET", "ab" * 20),
    (PRODUCTION, "WEBHOOK_SECRET", "an-example-of-a-secret-for-webhooks"),
    (STAGING, "NOTIFY_WEBHOOK_SECRET", "0" * 40),
    (STAGING, "NOTIFY_WEBHOOK_SECRET", "the-password-of-all-our-notifications"),
    *((SANDBOX, "DATABASE_URL", f"{wrong}@db.example/name") for wrong in UNREADABLE),
    *((PRODUCTION, "MIGRATION_DATABASE_URL", f"{wrong}@db.example/name") for wrong in UNREADABLE),
    *(
        (PRODUCTION, "BROKER_URL", f"{wrong.replace('postgres', 'rediss')}@db.example/0")
        for wrong in UNREADABLE[:2]
    ),
    (PRODUCTION, "EMAIL_URL", "smtp+tls://user:canary/7f3a@mail.example:587"),
    (SANDBOX, "DATABASE_URL", "nonsense"),
    (PRODUCTION, "ALLOWED_HOSTS", "*"),
    (PRODUCTION, "ALLOWED_HOSTS", "countersign.example,*"),
    (PRODUCTION, "SINGLE_MACHINE", None),
    (PRODUCTION, "SINGLE_MACHINE", "false"),
    (PRODUCTION, "DATABASE_URL", "postgres://countersign@db.example/countersign"),
    (PRODUCTION, "DATABASE_URL", "postgres://countersign@db.example/countersign?sslmode=prefer"),
    (PRODUCTION, "DATABASE_URL", "postgres://countersign@db.example/countersign?sslmode=require"),
    (PRODUCTION, "DATABASE_URL", "postgres://countersign@10.0.0.5/countersign?sslmode=disable"),
    (PRODUCTION, "BROKER_URL", "redis://broker.example/0"),
    (PRODUCTION, "DATABASE_URL", "postgres://countersign@/countersign?host=db.example"),
    (STAGING, "BROKER_URL", "amqp://10.0.0.5//"),
    (PRODUCTION, "EMAIL_URL", "smtp://user:secret@mail.example:25"),
    (PRODUCTION, "AUDIT_CHECKPOINT_DESTINATIONS", "syslog+tcp://log.example:514"),
    (PRODUCTION, "AUDIT_CHECKPOINT_DESTINATIONS", "file:///volume/checkpoints,syslog+udp://10.0.0.5:514"),
    (PRODUCTION, "GATEWAY_URL", "https://169.254.169.254/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://[fe80::1]/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://[::ffff:169.254.169.254]/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://0.0.0.0/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://2852039166/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://0xa9fea9fe/v2"),
    (PRODUCTION, "GATEWAY_URL_V4", "https://169.254.43518/v4"),
    (PRODUCTION, "GATEWAY_URL", "https://2130706433/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://0x7f.1/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://10.66051/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://10.1.2.3/v2"),
    (PRODUCTION, "GATEWAY_URL_V4", "https://192.168.1.1/v4"),
    (PRODUCTION, "GATEWAY_API_KEY", None),
    (PRODUCTION, "GATEWAY_API_KEY", SANDBOX_API_KEY),
    (PRODUCTION, "GATEWAY_API_KEY", ""),
    (PRODUCTION, "GATEWAY_URL", None),
    (PRODUCTION, "GATEWAY_URL", "http://api.service.example/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://127.0.0.1:8001/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://staging.service.example/v2"),
    (PRODUCTION, "GATEWAY_URL", "https://api.STAGING.service.example/v2"),
    (PRODUCTION, "GATEWAY_URL_V4", "http://api.service.example/v4"),
    (PRODUCTION, "GATEWAY_URL_V4", "https://staging.service.example/v4"),
    (PRODUCTION, "PUBLIC_URL", "http://countersign.example"),
    (STAGING, "PUBLIC_URL", "countersign.example"),
    *((SANDBOX, "BEHIND_PROXY", wrong) for wrong in ("enabled", "ja", "2", "y", "", "true # behind Caddy")),
    (PRODUCTION, "STRICT_BALANCE_ORDER", "ture"),
    *((SANDBOX, "KEEP_UPLOADS_DAYS", wrong) for wrong in ("thirty", "30d", "1.5", "")),
    *((SANDBOX, "SEND_DEADLINE_SECONDS", wrong) for wrong in ("thirty", "30s", "1,000")),
    (SANDBOX, "FAULT_POINT", "kill"),
    (SANDBOX, "LOG_LEVEL", "verbose"),
    (SANDBOX, "GATEWAY_API_KEY_FILE", "/missing/canary"),
]


def changed(environment: dict[str, str], name: str, value: str | None) -> dict[str, str]:
    """The environment with one setting changed or removed."""
    others = {key: text for key, text in environment.items() if key != f"COUNTERSIGN_{name}"}
    return others if value is None else {**others, f"COUNTERSIGN_{name}": value}


@pytest.fixture(scope="module")
def starts() -> dict[str, Start]:
    """The result of starting each valid environment."""
    return dict(zip(STARTS, starts_in(STARTS.values()), strict=True))


@pytest.fixture(scope="module")
def refusals() -> list[Start]:
    """The result of starting each invalid environment, in the order of the table."""
    return starts_in(changed(*row) for row in REFUSED)


@pytest.mark.parametrize("name", STARTS)
def test_valid_settings_load(starts: dict[str, Start], name: str) -> None:
    assert starts[name].refused == ""
    assert starts[name].values["ROOT_URLCONF"] == "backoffice.urls"


@pytest.mark.parametrize(
    "row",
    range(len(REFUSED)),
    ids=[f"{base.get('COUNTERSIGN_ENVIRONMENT', 'sandbox')}-{name}-{value}" for base, name, value in REFUSED],
)
def test_an_invalid_setting_prevents_startup_and_is_named(refusals: list[Start], row: int) -> None:
    environment, name, value = REFUSED[row]
    refusal = refusals[row].refused
    assert refusal.startswith("ImproperlyConfigured: ")
    named = {"GATEWAY_URL_V4": "_V4", "SINGLE_MACHINE": "COUNTERSIGN_SINGLE_MACHINE=true"}
    if environment is DEMO and name == "ALLOWED_HOSTS":
        named["ALLOWED_HOSTS"] = "DEMO"
    assert named.get(name, f"COUNTERSIGN_{name}") in refusal
    assert not [text for text in (value or "").split() if len(text) > 20 and text in refusal]
    assert "canary" not in refusal


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ENVIRONMENT", "live", "set sandbox, rehearsal, staging or production"),
        ("SECRET_KEY", None, "secrets.token_urlsafe(64)"),
        ("ENCRYPTION_KEYS", None, "secrets.token_bytes(32)"),
        ("GATEWAY_API_KEY", None, "set the API key"),
        ("METRICS_TOKEN", "s" * 32, "secrets.token_urlsafe(32)"),
        ("BEHIND_PROXY", "enabled", "must be true or false; yes or no, on or off, and 1 or 0"),
        ("KEEP_UPLOADS_DAYS", "thirty", "must be a whole number"),
        ("DATABASE_URL", "postgres://u:a/b@host/name", "%2F for /"),
    ],
)
def test_a_refusal_says_what_to_set(name: str, value: str | None, says: str) -> None:
    [start] = starts_in([changed(PRODUCTION, name, value)])
    assert says in start.refused


@pytest.mark.parametrize("address", [f"{wrong}@db.example/name" for wrong in UNREADABLE])
def test_an_address_that_cannot_be_read_leaves_no_part_of_its_password_in_the_output(
    start_settings: StartProcess, address: str
) -> None:
    refused = start_settings(**changed(PRODUCTION, "DATABASE_URL", address))
    assert "COUNTERSIGN_DATABASE_URL" in refused.stderr.strip().splitlines()[-1]
    assert "canary" not in refused.stdout + refused.stderr


@pytest.mark.parametrize("setting", ["COUNTERSIGN_DATA_DIR", "COUNTERSIGN_JOURNAL_DIR"])
def test_a_folder_that_everybody_can_read_prevents_startup(tmp_path: Path, setting: str) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o750)
    assert not starts_in([{**PRODUCTION, setting: str(folder)}])[0].refused
    folder.chmod(0o755)
    refusal = starts_in([{**PRODUCTION, setting: str(folder)}])[0].refused
    assert setting in refusal
    assert f"chmod 700 {folder}" in refusal


def test_a_file_of_variables_that_everybody_can_read_prevents_startup(tmp_path: Path) -> None:
    """Its keys decrypt and seal everything. A file for the group is accepted, as folders are."""
    file = tmp_path / "env"
    file.write_text("COUNTERSIGN_GATEWAY_API_USER=of-the-file\n")
    environment = {**PRODUCTION, "COUNTERSIGN_ENV_FILE": str(file)}
    file.chmod(0o640)
    assert not starts_in([environment])[0].refused
    file.chmod(0o644)
    refusal = starts_in([environment])[0].refused
    assert "COUNTERSIGN_ENV_FILE" in refusal
    assert f"chmod 600 {file}" in refusal
    assert not starts_in([{"COUNTERSIGN_ENV_FILE": str(file)}])[0].refused, "in the sandbox"


def test_the_data_folder_is_made_for_its_owner_only(tmp_path: Path) -> None:
    assert not starts_in([{**PRODUCTION, "COUNTERSIGN_DATA_DIR": str(tmp_path / "new")}])[0].refused
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_the_process_ends_with_the_error_as_its_last_line(start_settings: StartProcess) -> None:
    assert start_settings(**PRODUCTION).returncode == 0
    refused = start_settings(**changed(PRODUCTION, "DEBUG", "true"))
    assert refused.returncode != 0
    last_words = refused.stderr.strip().splitlines()[-1]
    assert last_words.endswith("ImproperlyConfigured: COUNTERSIGN_DEBUG must be off outside the sandbox")


def test_a_rehearsal_has_the_transport_of_production() -> None:
    rehearsal, production = settings_in(REHEARSAL), settings_in(PRODUCTION)
    names = [
        name
        for name in production
        if name.startswith(("SECURE_", "SESSION_", "CSRF_", "STORAGES", "MIDDLEWARE"))
    ]
    assert len(names) > 15
    assert [name for name in names if rehearsal[name] != production[name]] == []


def test_variables_of_the_file_count_unless_the_process_has_its_own(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("COUNTERSIGN_LOG_LEVEL=DEBUG\nCOUNTERSIGN_GATEWAY_API_USER=of-the-file\n")
    file.chmod(0o600)
    named = {"COUNTERSIGN_ENV_FILE": str(file)}
    assert settings_in(named)["GATEWAY_API_USER"] == "of-the-file"
    assert settings_in({**named, "COUNTERSIGN_GATEWAY_API_USER": "own"})["GATEWAY_API_USER"] == "own"
    assert settings_in({"COUNTERSIGN_ENV_FILE": ""})["GATEWAY_API_USER"] == "countersign-demo"


def test_a_file_of_variables_that_is_named_must_exist_and_be_readable(tmp_path: Path) -> None:
    """Without it every command would work on the empty sandbox of the defaults."""
    missing = tmp_path / "missing"
    latin = tmp_path / "latin"
    latin.write_bytes("COUNTERSIGN_GATEWAY_API_USER=é".encode("latin-1"))
    said = {
        missing: f"names {missing}, which does not exist",
        tmp_path: f"names {tmp_path}, which cannot be read: Is a directory",
        latin: f"names {latin}, which cannot be read: not UTF-8",
    }
    starts = starts_in({"COUNTERSIGN_ENV_FILE": str(file)} for file in said)
    assert [start.refused for start in starts] == [
        f"ImproperlyConfigured: COUNTERSIGN_ENV_FILE {text}" for text in said.values()
    ]


def test_nothing_is_made_for_a_file_of_variables_that_does_not_exist(
    start_settings: StartProcess, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    refused = start_settings(COUNTERSIGN_ENV_FILE=str(tmp_path / "missing"), COUNTERSIGN_DATA_DIR=str(folder))
    assert refused.returncode != 0
    assert not folder.exists()


@pytest.mark.parametrize(
    "line",
    [
        " COUNTERSIGN_GATEWAY_API_KEY=canary",
        "COUNTERSIGN_GATEWAY_API_KEY =canary",
        "COUNTERSIGN_GATEWAY_API_KEY: canary",
        "canary",
    ],
)
def test_a_line_of_the_file_that_cannot_be_read_is_named_and_not_repeated(tmp_path: Path, line: str) -> None:
    file = tmp_path / "env"
    file.write_text(
        f"# a comment\n\n  \n; another\n  # and\nCOUNTERSIGN_GATEWAY_API_USER=of-the-file\n{line}\n"
    )
    [start] = starts_in([{"COUNTERSIGN_ENV_FILE": str(file)}])
    assert f"COUNTERSIGN_ENV_FILE names {file}, whose line 7 cannot be read" in start.refused
    assert "canary" not in start.refused
    file.write_text(file.read_text().replace(line, "export COUNTERSIGN_LOG_LEVEL='DEBUG'"))
    values = settings_in({"COUNTERSIGN_ENV_FILE": str(file)})
    assert (values["GATEWAY_API_USER"], values["_LOG_LEVEL"]) == ("of-the-file", "DEBUG")


@pytest.mark.parametrize(
    ("is_on", "texts"),
    [(True, ("true", "Yes", "ON", "1", " True ")), (False, ("false", "No", "OFF", "0", "False\n"))],
)
def test_yes_and_no_are_read_in_any_case(is_on: bool, texts: tuple[str, ...]) -> None:
    starts = starts_in({"COUNTERSIGN_BEHIND_PROXY": text} for text in texts)
    assert [start.values.get("TRUST_FORWARDED_FOR") for start in starts] == [is_on] * len(texts)


def test_numbers_are_read_from_files_as_well(tmp_path: Path) -> None:
    file = tmp_path / "days"
    file.write_text("31\n")
    values = settings_in(
        {"COUNTERSIGN_KEEP_UPLOADS_DAYS_FILE": str(file), "COUNTERSIGN_SEND_DEADLINE_SECONDS": "2.5"}
    )
    assert (values["KEEP_UPLOADS_DAYS"], values["SEND_DEADLINE_SECONDS"]) == (31, 2.5)


def test_the_sandbox_has_its_printed_key() -> None:
    assert settings_in(SANDBOX)["GATEWAY_API_KEY"] == SANDBOX_API_KEY


@pytest.mark.parametrize(
    "environment", [SANDBOX, STAGING, PRODUCTION], ids=["sandbox", "staging", "production"]
)
def test_nothing_of_the_demo_is_installed_outside_the_demo(environment: dict[str, str]) -> None:
    values = settings_in(environment)
    processors = values["TEMPLATES"][0]["OPTIONS"]["context_processors"]
    assert not [name for name in [*values["INSTALLED_APPS"], *processors] if "demo" in name]
    assert "backoffice.demo" in settings_in(DEMO)["INSTALLED_APPS"]


@pytest.mark.parametrize(
    ("written", "limits"),
    [
        (None, {"NGN": "10000000", "USD": "10000", "USDT": "10000"}),
        ("", {"NGN": "10000000", "USD": "10000", "USDT": "10000"}),
        ("NGN=10000000.50", {"NGN": "10000000.50", "USD": "10000", "USDT": "10000"}),
        ("USDT=0, USD=5000", {"NGN": "10000000", "USD": "5000", "USDT": "0"}),
    ],
)
def test_a_currency_has_its_default_limit_unless_overridden(
    written: str | None, limits: dict[str, str]
) -> None:
    changed = {} if written is None else {"COUNTERSIGN_SECOND_APPROVAL_ABOVE": written}
    assert settings_in({**PRODUCTION, **changed})["SECOND_APPROVAL_ABOVE"] == limits


def test_hsts_holds_for_a_year_and_for_subdomains_unless_they_are_left_out() -> None:
    others = {"COUNTERSIGN_HSTS_SUBDOMAINS": "0", "COUNTERSIGN_HSTS_PRELOAD": "true"}
    for environment, subdomains, preload in (
        (PRODUCTION, True, False),
        ({**PRODUCTION, **others}, False, True),
    ):
        values = settings_in(environment)
        assert values["SECURE_HSTS_SECONDS"] == 365 * 24 * 60 * 60
        assert values["SECURE_HSTS_INCLUDE_SUBDOMAINS"] is subdomains
        assert values["SECURE_HSTS_PRELOAD"] is preload
    assert settings_in(SANDBOX)["SECURE_HSTS_SECONDS"] == 0


def test_the_options_of_a_postgresql_connection() -> None:
    address = "postgres://countersign@db.example/countersign?sslmode=verify-ca&options=-c%20lock_timeout%3D5s"
    address += "&keepalives_idle=60"
    database = settings_in({**PRODUCTION, "COUNTERSIGN_DATABASE_URL": address})["DATABASES"]["default"]
    assert database["OPTIONS"] == {
        "sslmode": "verify-ca",
        "options": "-c jit=off -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=2 "
        "-c tcp_user_timeout=20s -c lock_timeout=5s -c synchronous_commit=on",
        "connect_timeout": 5,
        "keepalives_idle": 60,
        "keepalives_interval": 5,
        "keepalives_count": 2,
        "tcp_user_timeout": 20_000,
    }


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no connections")
def test_both_ends_of_a_database_connection_probe_whether_the_other_is_there() -> None:
    ours = connection.copy()
    ours.settings_dict["OPTIONS"] = product_settings.DATABASES["default"]["OPTIONS"]
    with contextlib.closing(ours), ours.cursor() as cursor:
        cursor.execute("SELECT current_setting('tcp_user_timeout'), current_setting('tcp_keepalives_idle')")
        assert cursor.fetchone() == ("20000", "10")
        with socket.socket(fileno=os.dup(ours.connection.fileno())) as end:
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000
            assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10


@pytest.mark.django_db
def test_commits_in_this_database_wait_for_the_disk() -> None:
    query = (
        "PRAGMA synchronous"
        if connection.vendor == "sqlite"
        else "SELECT setting, source FROM pg_settings WHERE name = 'synchronous_commit'"
    )
    ours = connection.copy()
    ours.settings_dict["OPTIONS"] = product_settings.DATABASES["default"]["OPTIONS"]
    with contextlib.closing(ours), ours.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchone() in [(2,), ("on", "client")]  # 2 is FULL


def test_a_secret_file_may_end_with_a_line_break(tmp_path: Path) -> None:
    environment = dict(PRODUCTION)
    for name in ("SECRET_KEY", "GATEWAY_API_KEY", "ENCRYPTION_KEYS"):
        file = tmp_path / name
        file.write_text(environment.pop(f"COUNTERSIGN_{name}") + "\n")
        environment[f"COUNTERSIGN_{name}_FILE"] = str(file)
    values = settings_in(environment)
    assert values["SECRET_KEY"] == PRODUCTION["COUNTERSIGN_SECRET_KEY"]
    assert values["GATEWAY_API_KEY"] == PRODUCTION["COUNTERSIGN_GATEWAY_API_KEY"]
    assert [key.strip() for key in values["ENCRYPTION_KEYS"]] == [PRODUCTION["COUNTERSIGN_ENCRYPTION_KEYS"]]


def test_variables_that_no_setting_reads_are_known(tmp_path: Path) -> None:
    environment = {
        **PRODUCTION,
        "COUNTERSIGN_SETUP_DATABASE_URL": "postgres://postgres@/postgres",
        "COUNTERSIGN_ALOWED_HOSTS": "countersign.example",
    }
    file = tmp_path / "key"
    file.write_text(environment.pop("COUNTERSIGN_GATEWAY_API_KEY"))
    environment["COUNTERSIGN_GATEWAY_API_KEY_FILE"] = str(file)
    settings_file = tmp_path / "env"
    settings_file.touch(mode=0o600)
    settings_file.write_text("COUNTERSIGN_LOG_LEVLE=DEBUG\nCOUNTERSIGN_LOG_FORMAT=text\n")
    environment["COUNTERSIGN_ENV_FILE"] = str(settings_file)
    expected = ["COUNTERSIGN_ALOWED_HOSTS", "COUNTERSIGN_LOG_LEVLE"]
    assert settings_in(environment)["UNKNOWN_VARIABLES"] == expected


def test_the_deployment_check_warns_of_a_misspelt_variable(settings: Settings) -> None:
    settings.UNKNOWN_VARIABLES = ["COUNTERSIGN_ALOWED_HOSTS", "COUNTERSIGN_QQQQ"]
    misspelt, unlike_any = check_names()
    assert (misspelt.id, unlike_any.id) == ("core.W003", "core.W003")
    assert misspelt.msg.startswith("COUNTERSIGN_ALOWED_HOSTS is set")
    assert misspelt.hint == "Did you mean COUNTERSIGN_ALLOWED_HOSTS?"
    assert "configuration.md" in str(unlike_any.hint)
    settings.UNKNOWN_VARIABLES = []
    assert list(check_names()) == []
