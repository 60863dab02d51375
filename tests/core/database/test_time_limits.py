"""Migrations and pages wait for a lock of PostgreSQL for a limited time only, and so does what waits behind them."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from textwrap import dedent

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import RequestFactory
from pytest_django import Settings

from backoffice.core.database.time_limits import has_waited_too_long, limited_lock_waits
from backoffice.core.management.commands import migrate
from backoffice.core.telemetry.endpoints import failed_request
from backoffice.webhooks import migrations
from tools.processes import ROOT, run_python

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="SQLite has one write lock and its own limit"
    ),
]
NEW = "9999_note"
READ = "SELECT count(*) FROM webhooks_delivery"
COLUMNS = """
    SELECT count(*) FROM information_schema.columns WHERE table_name = 'webhooks_delivery' AND column_name = 'note'
"""
MIGRATION = """
    from django.db import migrations

    class Migration(migrations.Migration):
        dependencies = [("webhooks", {last!r})]
        operations = [
            migrations.RunSQL(
                "ALTER TABLE webhooks_delivery ADD COLUMN note text NULL",
                "ALTER TABLE webhooks_delivery DROP COLUMN note",
            )
        ]
"""


@contextmanager
def other_session() -> Iterator["psycopg.Connection[tuple[int]]"]:
    """Another process with a transaction that has read the table, and goes on."""
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as session:
        session.execute(READ)
        yield session


@pytest.fixture
def new_migration(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more migration of webhooks than this release has, which needs the table alone."""
    folder = tmp_path / "one_more"
    folder.mkdir()
    last = max(file.stem for file in Path(migrations.__path__[0]).glob("0*.py"))
    (folder / "__init__.py").write_text(f"__path__ = [{str(folder)!r}, {migrations.__path__[0]!r}]\n")
    (folder / f"{NEW}.py").write_text(dedent(MIGRATION.format(last=last)))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(migrate, "PAUSE", 0)
    settings.MIGRATION_MODULES = {"webhooks": "one_more"}
    settings.MIGRATION_LOCK_TIMEOUT = 1
    try:
        yield
    finally:
        connection.close()
        call_command("migrate", "webhooks", last, verbosity=0)
        for name in [name for name in sys.modules if name.startswith("one_more")]:
            del sys.modules[name]


def is_migrated() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS)
        return bool(cursor.fetchone()[0])


@pytest.mark.usefixtures("new_migration")
def test_a_migration_gives_up_a_table_that_remains_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "TRIES", 2)
    output = StringIO()
    with other_session() as session:
        with pytest.raises(CommandError, match="If a table is in use"):
            call_command("migrate", "webhooks", stdout=output)
        assert "A table is in use. Trying again in 0 seconds (1 of 2)." in output.getvalue()
        assert session.execute(READ).fetchone() == (0,)
        assert not is_migrated()


@pytest.mark.usefixtures("new_migration")
def test_a_migration_tries_again_once_the_table_is_free() -> None:
    with other_session() as session:

        class Output(StringIO):
            def write(self, text: str) -> int:
                if "A table is in use" in text:
                    session.rollback()
                return super().write(text)

        call_command("migrate", "webhooks", stdout=Output())
        assert is_migrated()


def test_the_limit_ends_with_the_migration() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        before = cursor.fetchone()
        with limited_lock_waits(7):
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("7s",)
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == before


WEB_PROCESS = """
import runpy
import django
django.setup()
runpy.run_path("gunicorn.conf.py")["post_worker_init"](None)
from django.db import connection
with connection.cursor() as cursor:
    for name in ("lock_timeout", "statement_timeout"):
        cursor.execute(f"SHOW {name}")
        print(*cursor.fetchone())
"""


@pytest.mark.parametrize(
    ("in_url", "limits"), [("", ["3s", "4s"]), ("options=-c%20lock_timeout%3D2s", ["2s", "4s"])]
)
def test_a_web_process_limits_its_connections(tmp_path: Path, in_url: str, limits: list[str]) -> None:
    url = os.environ["COUNTERSIGN_TEST_DATABASE_URL"].rpartition("/")[0]
    own = {
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
        "COUNTERSIGN_DATA_DIR": str(tmp_path),
        "COUNTERSIGN_DATABASE_URL": f"{url}/{connection.settings_dict['NAME']}?{in_url}",
        "COUNTERSIGN_WEB_LOCK_TIMEOUT": "3",
        "COUNTERSIGN_WEB_STATEMENT_TIMEOUT": "4",
    }
    done = run_python("-c", WEB_PROCESS, own=own, folder=ROOT)
    assert done.stdout.split() == limits, done.stderr


def test_what_took_too_long_is_answered_with_a_page_that_says_so(
    rf: RequestFactory, caplog: pytest.LogCaptureFixture
) -> None:
    with other_session() as session:
        session.execute("LOCK TABLE webhooks_delivery IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(OperationalError) as raised, limited_lock_waits(1), connection.cursor() as cursor:
            cursor.execute(READ)
    assert has_waited_too_long(raised.value)
    try:
        raise raised.value
    except OperationalError:
        with caplog.at_level(logging.ERROR):
            answer = failed_request(rf.get("/operations/"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")
    assert "<h1>Database busy</h1>" in answer.content.decode()
    assert "lock timeout" in caplog.text


def test_a_failure_of_another_cause_is_no_wait(rf: RequestFactory) -> None:
    with pytest.raises(OperationalError) as raised, connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    connection.close()
    assert not has_waited_too_long(raised.value)
