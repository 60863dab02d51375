"""The role that runs does the whole work, and cannot undo what the database enforces."""

import base64
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import staff
from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.roles import Role
from backoffice.audit.verification import verify_chain
from backoffice.core import clock
from backoffice.core.database.role import RoleProblem, check_database_role, database_role, refresh_grants
from backoffice.core.storage.files import ARCHIVES, file_store
from backoffice.core.storage.retention import Keeping
from backoffice.ledger.mirror.sync import load_all, sync_now
from backoffice.ledger.models import Transaction
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.reports.exports import services
from backoffice.reports.exports.runner import run_next_export
from backoffice.reports.models import ExportJob, ExportState
from backoffice.retention.archives import archive_evidence
from backoffice.retention.tables import TABLES
from backoffice.webhooks.processing import process_due_deliveries
from tests import factories
from tests.ledger.long_list import LongList, numbered
from tests.operations.conftest import provider as provider
from tests.operations.provider_list import NAMED, record, sent, shows
from tests.reports.export_requests import requested_export
from tests.stub_provider import StubProvider, serving
from tests.sweeping import sweep_operations
from tests.webhooks.conftest import receiver as receiver
from tests.webhooks.conftest import use_keys as use_keys
from tests.webhooks.steps import deliver, status_delivery

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles"),
]
ADDED_ONLY = ("audit_entry", "operations_approval", "ledger_transactionchange", "policies_policyversion")
REWRITES = (
    "UPDATE {table} SET {column} = {column}",
    "DELETE FROM {table}",
    "TRUNCATE {table} CASCADE",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
)
DELETES_NOTHING = "DELETE FROM {table} WHERE false"
TRIGGERS = "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal"


def run(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def is_refused(statement: str) -> bool:
    """Whether the database refuses it for lack of rights, before any trigger."""
    try:
        run(statement)
    except ProgrammingError as exc:
        return "permission denied" in str(exc) or "must be owner" in str(exc)
    return False


@pytest.mark.usefixtures("receiver")
def test_the_role_that_runs_does_the_whole_work(
    preparer: User,
    approver: User,
    auditor: User,
    provider: StubProvider,
    runtime_role: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    operation = sent(provider, preparer, approver, NAMED)
    assert operation.status == Status.PROCESSING
    shows(provider, record("T-1"))
    assert deliver(status_delivery("T-1")) == 200
    process_due_deliveries()
    assert Operation.objects.get().status == Status.SUCCEEDED

    waiting = factories.prepared_to_another_account(preparer)
    factories.release(factories.approve(waiting, approver), approver)
    sweep_operations()
    assert "permission denied" not in caplog.text

    sync_now()
    assert Transaction.objects.exists()
    job = requested_export(auditor)
    assert run_next_export() == 1
    assert ExportJob.objects.get(pk=job.pk).state == ExportState.DONE
    assert verify_chain().fault is None
    role = database_role()
    assert role is not None
    assert role.name == runtime_role


@pytest.mark.usefixtures("receiver")
def test_the_role_that_runs_prunes_exports_archives_and_ends_sessions(
    preparer: User,
    approver: User,
    auditor: User,
    sign_in: Callable[[Client, User], Client],
    runtime_role: str,
    settings: Settings,
) -> None:
    """What it deletes is what may be deleted, and what it copies is complete."""
    settings.AUDIT_CHECKPOINT_KEYS = [f"first:{base64.b64encode(os.urandom(32)).decode()}"]
    operation = factories.approve(factories.prepared(preparer), approver)
    assert deliver(status_delivery("T-1")) == 200
    process_due_deliveries()
    staff.issue_setup_link(preparer.pk, actor=None)
    sign_in(Client(), preparer)
    signs_out = sign_in(Client(), approver)
    assert signs_out.post(reverse("accounts:sign_out")).status_code == 302
    kept, expired = requested_export(auditor), requested_export(auditor)
    assert (run_next_export(), run_next_export()) == (1, 1)
    services.remove_export(kept.pk, actor=auditor)

    with clock.use_clock(lambda: timezone.now() + timedelta(days=60)):
        services.delete_expired_exports()  # and files that other tests left
    assert ExportJob.objects.get(pk=expired.pk).state == ExportState.EXPIRED
    archive, output = archive_evidence(datetime(2000, 1, 1, tzinfo=UTC), clock.now()), StringIO()
    call_command("verify_archive", file_store(ARCHIVES).path(archive.name), stdout=output)
    assert "intact" in output.getvalue()

    with clock.use_clock(lambda: timezone.now() + timedelta(days=10_000)):
        call_command("prune", stdout=output)
    for table in ("webhooks_delivery", "accounts_staffsession", "accounts_setuplink", "reports_exportjob"):
        assert f"{table}: 0 rows" not in output.getvalue()
    assert not StaffSession.objects.exists()
    assert not ExportJob.objects.exists()
    assert operation.approvals.count() == 1
    assert verify_chain().fault is None


def test_the_role_that_runs_may_delete_what_is_pruned_and_no_evidence(runtime_role: str) -> None:
    """PostgreSQL checks the right before it looks for a row."""
    pruned = [table for table in TABLES if table.keeping == Keeping.PRUNED]
    names = [model._meta.db_table for table in pruned for model in (table.model, *table.cascades)]
    assert len(names) > len(pruned) >= 10
    assert [name for name in names if is_refused(DELETES_NOTHING.format(table=name))] == []
    evidence = [table.name for table in TABLES if table.keeping == Keeping.EVIDENCE]
    assert [name for name in evidence if not is_refused(DELETES_NOTHING.format(table=name))] == []


def test_what_is_only_added_can_be_neither_changed_nor_deleted(runtime_role: str) -> None:
    column = {"audit_entry": "hash", "policies_policyversion": "number"}
    statements = [
        statement.format(table=table, column=column.get(table, "id"))
        for table in ADDED_ONLY
        for statement in REWRITES
    ]
    assert [statement for statement in statements if not is_refused(statement)] == []


@pytest.fixture
def long_list(settings: Settings) -> Iterator[LongList]:
    """A provider with 3,000 records, which are read in steps of 1,000."""
    with serving(LongList()) as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        stub.listed = numbered(3_000)
        yield stub


def test_the_first_load_analyzes_the_mirror_under_the_role_that_runs(
    long_list: LongList, runtime_role: str
) -> None:
    """Without it the planner takes the table for empty until autovacuum analyzes it."""
    rows = "SELECT reltuples FROM pg_class WHERE oid = 'ledger_transaction'::regclass"
    with connection.cursor() as cursor:
        run("SELECT ledger_analyze_mirror()")  # another test may have left the number of its rows
        cursor.execute(rows)
        assert cursor.fetchone()[0] <= 0
        # PostgreSQL otherwise counts new rows a second later.
        load_all(lambda _: cursor.execute("SELECT pg_stat_force_next_flush()"))
        cursor.execute(rows)
        assert cursor.fetchone()[0] >= 1_000


def test_functions_with_the_rights_of_the_owner_are_called_only_if_declared(runtime_role: str) -> None:
    run("RESET ROLE")
    run("CREATE FUNCTION undeclared() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'")
    try:
        assert refresh_grants(runtime_role)
        run(f'SET ROLE "{runtime_role}"')
        assert is_refused("SELECT undeclared()")
        run("SELECT ledger_analyze_mirror()")
        run("RESET ROLE")
        assert not refresh_grants(runtime_role)
    finally:
        run("RESET ROLE")
        run("DROP FUNCTION undeclared()")


def test_a_function_with_the_rights_of_the_owner_has_a_fixed_path(transactional_db: None) -> None:
    """Otherwise whoever calls it could let its names mean other tables."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname, proconfig FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        )
        assert cursor.fetchall() == [("ledger_analyze_mirror", ["search_path=public, pg_temp"])]


def test_triggers_can_be_neither_dropped_nor_replaced(runtime_role: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(TRIGGERS)
        triggers = cursor.fetchall()
    assert len(triggers) > 20
    assert [name for table, name in triggers if not is_refused(f"DROP TRIGGER {name} ON {table}")] == []
    assert is_refused("ALTER FUNCTION audit_refuse() OWNER TO CURRENT_USER")
    assert is_refused("SET session_replication_role = replica")


def test_other_ways_around_the_rules_are_refused(runtime_role: str) -> None:
    statements = [
        "TRUNCATE operations_operation CASCADE",
        "DELETE FROM operations_operation",
        "DELETE FROM accounts_user",
        "INSERT INTO auth_group (name) VALUES ('Another role')",
        "UPDATE auth_group_permissions SET group_id = group_id",
        "DELETE FROM django_migrations",
        "CREATE TABLE another (id integer)",
        "ALTER TABLE operations_operation ADD COLUMN another integer",
        "SELECT setval(pg_get_serial_sequence('ledger_balancebreak', 'id'), 1)",
    ]
    assert [statement for statement in statements if not is_refused(statement)] == []


def test_the_role_that_runs_has_no_right_too_many(runtime_role: str) -> None:
    role = database_role()
    assert role is not None
    assert (role.name, role.problems) == (runtime_role, {})


def test_the_check_names_what_a_role_may_beyond_its_work(runtime_role: str, settings: Settings) -> None:
    settings.ENVIRONMENT = "production"
    assert list(check_database_role()) == []
    run("RESET ROLE")
    assert "is a superuser" in str(next(iter(check_database_role())))
    run(
        f'GRANT UPDATE (reason), TRUNCATE ON operations_approval TO "{runtime_role}"'.replace(
            "(reason)", "(digest)"
        )
    )
    run(f'SET ROLE "{runtime_role}"')
    role = database_role()
    assert role is not None
    assert role.problems == {
        RoleProblem.MAY_TRUNCATE: ["operations_approval"],
        RoleProblem.MAY_REWRITE: ["operations_approval"],
    }
    assert [message.id for message in check_database_role()] == ["core.W001"] * 2


def test_the_owner_of_the_tables_is_reported(runtime_role: str) -> None:
    run("RESET ROLE")
    run(f'ALTER TABLE audit_lastverification OWNER TO "{runtime_role}"')
    run(f'SET ROLE "{runtime_role}"')
    try:
        role = database_role()
    finally:
        run("RESET ROLE")
        run("ALTER TABLE audit_lastverification OWNER TO CURRENT_USER")
    assert role is not None
    assert role.problems == {RoleProblem.OWNS_TABLES: ["audit_lastverification"]}


def test_granting_again_changes_nothing_and_revokes_what_is_too_much(runtime_role: str) -> None:
    run("RESET ROLE")
    assert not refresh_grants(runtime_role)
    run(f'GRANT DELETE ON audit_entry TO "{runtime_role}"')
    assert refresh_grants(runtime_role)
    run(f'SET ROLE "{runtime_role}"')
    assert is_refused("DELETE FROM audit_entry")


def test_a_migration_as_the_runtime_role_says_which_role_it_needs(
    transactional_db: None, request: pytest.FixtureRequest
) -> None:
    auditor = Group.objects.get(name=Role.AUDITOR)
    auditor.permissions.add(Permission.objects.exclude(group=auditor)[0])
    request.getfixturevalue("runtime_role")
    with pytest.raises(CommandError, match="may not migrate: permission denied"):
        call_command("migrate", verbosity=0)
