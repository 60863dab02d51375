"""Incidents and the state of what must always hold: on the overview, on pages of their own, and as metrics."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import isolation
from backoffice.core.telemetry.processes import report
from backoffice.core.web.formatting import stored_error
from backoffice.ledger.mirror.rows import UnstorableRecordError
from backoffice.ledger.models import Mirror
from backoffice.operations import jobs
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.monitoring import Heartbeat, Incident, Inspection
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, IncidentKind
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.monitoring.integrity_checks import INTEGRITY_CHECKS
from tests import factories
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db

KIND = IncidentKind.SECOND_DEBIT
WHAT = str(KIND.label)
TOKEN = "a-token-for-the-scraper"


@pytest.fixture(autouse=True)
def inspected(db: None) -> None:
    inspect(full=True)
    now = timezone.now()
    Mirror.objects.create(pk=1, as_of=now, loaded_at=now)


@pytest.fixture
def incident(operation: Operation) -> Incident:
    return incidents.raise_incident(operation, kind=KIND, evidence={"received_id": "T-1 <b>250,000</b>"})


def found(**violations: list[str]) -> None:
    """What an inspection would have left."""
    violations_by_rule = {
        rule: {"count": len(broken), "references": broken} for rule, broken in violations.items()
    }
    Inspection.objects.update(violations=violations_by_rule)


def overview(client: Client) -> str:
    return text_of(client.get("/"))


def test_the_overview_shows_no_alert_when_all_checks_pass(as_approver: Client, operation: Operation) -> None:
    assert "open incident" not in overview(as_approver)


def test_the_overview_shows_failed_checks(as_approver: Client) -> None:
    found(insufficient_approvals=["W-1"], broken_audit_log=["entry 3: is missing"])
    shown = overview(as_approver)
    for rule in INTEGRITY_CHECKS:
        assert (str(rule.sentence) in shown) == (rule.name in {"insufficient_approvals", "broken_audit_log"})
    assert 'href="/reconciliation/incidents/"' in shown


@pytest.mark.parametrize("minutes", [4, 6])
def test_the_overview_shows_a_late_mirror(as_approver: Client, minutes: int) -> None:
    Mirror.objects.update(as_of=timezone.now() - timedelta(minutes=minutes))
    assert ("Transactions are out of date." in overview(as_approver)) == (minutes > 5)


def test_the_overview_shows_the_progress_of_the_first_load(as_approver: Client) -> None:
    Mirror.objects.update(loaded_at=None, pass_depth="whole", pass_page=41, pass_pages=100, rows=4000)
    shown = overview(as_approver)
    assert "40&nbsp;%, 4,000 transactions so far" in shown
    assert '<progress max="100" value="40" aria-label="Progress of the first sync">' in shown
    assert 'role="alert"' not in shown


def test_the_overview_shows_why_the_sync_stopped_early(as_approver: Client) -> None:
    Mirror.objects.update(error={"error": "<b>It</b> answered 500."}, error_at=timezone.now())
    assert "&lt;b&gt;It&lt;/b&gt; answered 500. It is retried every minute." in overview(as_approver)


def test_the_overview_shows_why_the_sync_stopped_in_the_readers_language(as_approver: Client) -> None:
    error = stored_error(UnstorableRecordError("T1", "a number has too many digits"))
    Mirror.objects.update(error=error, error_at=timezone.now())
    assert "Transaction T1 cannot be stored" in overview(as_approver)
    shown = as_approver.get("/", headers={"Accept-Language": "fr"}).content.decode()
    assert "La transaction T1 ne peut pas être enregistrée\u00a0: un nombre a trop de chiffres." in shown


def test_the_overview_shows_a_record_count_mismatch(as_approver: Client) -> None:
    Mirror.objects.update(rows=10, provider_count=12)
    assert "The provider's transaction count is 12; 2 are missing from Countersign." in overview(as_approver)
    Mirror.objects.update(rows=10, provider_count=7)
    assert "The provider's transaction count is 7, 3 lower than Countersign's." in overview(as_approver)


@pytest.mark.parametrize("minutes", [4, 6])
def test_the_overview_shows_when_checks_do_not_run(as_approver: Client, minutes: int) -> None:
    Inspection.objects.update(at=timezone.now() - timedelta(minutes=minutes))
    assert ("The integrity checks are not running" in overview(as_approver)) == (minutes > 5)


def test_the_overview_shows_that_no_check_ever_ran(as_approver: Client) -> None:
    Inspection.objects.all().delete()
    assert "They have never run." in overview(as_approver)


def test_the_overview_links_to_open_incidents_only(
    as_approver: Client, approver: User, incident: Incident
) -> None:
    assert "1 open incident<" in overview(as_approver)
    incidents.acknowledge_incident(incident.pk, actor=approver, note="Refunded")
    assert "open incident" not in overview(as_approver)


def test_the_overview_leads_to_the_incidents_that_it_names(
    as_approver: Client, administrator: User, incident: Incident
) -> None:
    factories.break_glass(administrator)
    named = set(re.findall(r'href="/reconciliation/incidents/#([^"]+)"', overview(as_approver)))
    assert named == {"account-changes", "operations-and-payments"}
    page = text_of(as_approver.get("/reconciliation/incidents/"))
    assert all(page.count(f'id="{section}"') == 1 for section in named)


def test_incidents_are_shown_before_the_first_inspection(as_approver: Client, incident: Incident) -> None:
    Inspection.objects.all().delete()
    assert "1 open incident<" in overview(as_approver)


def test_users_without_a_role_see_no_alerts(
    client: Client, outsider: User, sign_in: object, incident: Incident
) -> None:
    assert callable(sign_in)
    assert 'role="alert"' not in overview(sign_in(client, outsider))


def test_the_overview_takes_at_most_eight_queries(
    as_approver: Client, incident: Incident, warm_caches: None
) -> None:
    found(insufficient_approvals=["W-1"])
    with CaptureQueriesContext(connection) as queries:
        overview(as_approver)
    assert len(queries) <= 8


def test_the_list_has_every_incident_and_failed_check(
    as_approver: Client, incident: Incident, operation: Operation
) -> None:
    found(insufficient_approvals=[operation.reference])
    shown = text_of(as_approver.get("/reconciliation/incidents/"))
    assert WHAT in shown
    assert f'href="/search/?q={operation.reference}"' in shown


def test_the_operation_page_shows_its_incidents(
    as_approver: Client, approver: User, incident: Incident, operation: Operation
) -> None:
    assert incident.get_absolute_url() in text_of(as_approver.get(operation.get_absolute_url()))
    incidents.acknowledge_incident(incident.pk, actor=approver, note="Refunded by the service")
    assert "Refunded by the service" in text_of(as_approver.get(operation.get_absolute_url()))


def test_an_approver_acknowledges_an_incident_on_its_page(
    as_approver: Client, approver: User, incident: Incident
) -> None:
    shown = text_of(as_approver.get(incident.get_absolute_url()))
    assert "T-1 &lt;b&gt;250,000&lt;/b&gt;" in shown
    answer = as_approver.post(incident.get_absolute_url(), {"note": "Refunded"})
    assert (answer.status_code, answer["Location"]) == (302, "/reconciliation/incidents/")
    incident.refresh_from_db()
    assert (incident.acknowledged_by, incident.note) == (approver, "Refunded")


def test_new_evidence_is_shown_beside_the_previous_note(
    as_approver: Client, approver: User, incident: Incident, operation: Operation
) -> None:
    incidents.acknowledge_incident(incident.pk, actor=approver, note="Refunded")
    further = incidents.raise_incident(operation, kind=KIND, evidence={"received_id": "T-2"})
    assert "1 open incident<" in overview(as_approver)
    before = text_of(as_approver.get(incident.get_absolute_url()))
    assert f'<a href="{further.get_absolute_url()}">Further evidence</a>' in before
    assert "T-1" in before
    shown = text_of(as_approver.get(further.get_absolute_url()))
    assert f'<a href="{incident.get_absolute_url()}">Raised ' in shown
    assert "acknowledged by Amara Okafor: Refunded" in shown
    assert text_of(as_approver.get("/reconciliation/incidents/")).count("further evidence") == 1


@pytest.mark.parametrize("note", ["", " ", "x" * 501])
def test_an_invalid_note_is_reported_at_its_field(as_approver: Client, incident: Incident, note: str) -> None:
    answer = as_approver.post(incident.get_absolute_url(), {"note": note})
    assert answer.status_code == 422
    assert 'id="id_note_error"' in text_of(answer)
    assert note.strip() in text_of(answer)
    incident.refresh_from_db()
    assert incident.is_open


def test_a_second_acknowledgement_is_refused(
    as_approver: Client, administrator: User, incident: Incident
) -> None:
    incidents.acknowledge_incident(incident.pk, actor=administrator, note="Refunded")
    answer = as_approver.post(incident.get_absolute_url(), {"note": "Mine"})
    assert answer.status_code == 422
    incident.refresh_from_db()
    assert incident.note == "Refunded"


@pytest.mark.django_db(transaction=True)  # a stored report is read by a connection of its own
def test_the_csv_has_every_incident(as_approver: Client, incident: Incident, operation: Operation) -> None:
    answer = as_approver.get("/reports/incidents.csv")
    assert answer.status_code == 200
    text = b"".join(answer).decode()
    assert operation.reference in text
    assert WHAT in text


def metrics_of(client: Client, **headers: str) -> dict[str, float]:
    answer = client.get("/metrics", headers=headers)
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_the_metrics_show_the_state_of_the_database(
    client: Client, released: Operation, incident: Incident
) -> None:
    found(insufficient_approvals=["W-1", "W-2"])
    jobs.record_heartbeat("send_due")
    metrics = metrics_of(client)
    assert metrics["countersign_integrity_violations insufficient_approvals"] == 2
    assert metrics["countersign_integrity_violations unchecked_outcome"] == 0
    assert 0 <= metrics["countersign_integrity_checks_age_seconds"] < 60
    assert 0 <= metrics["countersign_mirror_age_seconds"] < 60
    assert metrics["countersign_mirror_loaded"] == 1
    assert metrics["countersign_mirror_sync_failed"] == 0
    assert metrics["countersign_mirror_transactions"] == 0
    assert metrics["countersign_mirror_missing"] == 0
    assert metrics["countersign_mirror_difference"] == 0
    assert metrics["countersign_operations approved"] == 1
    assert metrics["countersign_operations pending"] == 1
    assert metrics["countersign_operations unknown"] == 0
    assert metrics["countersign_oldest_unknown_outcome_age_seconds"] == 0
    assert metrics["countersign_incidents_open"] == 1
    assert metrics["countersign_payments_paused"] == 0
    assert metrics["countersign_releases_waiting"] == 1
    assert 0 <= metrics["countersign_sweeper_age_seconds send_due"] < 60


def test_a_long_queue_stands_still_only_if_nothing_leaves_its_balance(
    client: Client, released: Operation, preparer: User, approver: User
) -> None:
    Release.objects.update(released_at=timezone.now() - timedelta(minutes=10))
    assert 600 <= metrics_of(client)["countersign_releases_standstill_seconds"] < 660
    a_minute_ago = timezone.now() - timedelta(minutes=1)
    other = factories.approved(preparer, approver, amount=Decimal(40))
    factories.attempt(other, started_at=a_minute_ago, balance="USD", amount=other.amount)
    assert metrics_of(client)["countersign_releases_standstill_seconds"] >= 600
    Attempt.objects.update(balance="NGN")
    assert 60 <= metrics_of(client)["countersign_releases_standstill_seconds"] < 120
    a_while_ago = timezone.now() - timedelta(minutes=5)
    Release.objects.update(blocker=Blocker.INTERNAL_ERROR, blocked_since=a_while_ago)
    assert 300 <= metrics_of(client)["countersign_releases_standstill_seconds"] < 360
    Release.objects.all().delete()
    assert metrics_of(client)["countersign_releases_standstill_seconds"] == 0


def test_the_age_of_a_missing_inspection_is_infinite(client: Client) -> None:
    Inspection.objects.all().delete()
    assert metrics_of(client)["countersign_integrity_checks_age_seconds"] == float("inf")


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.7", {}, 403),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 403),
        ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}, 403),
        ("10.0.0.7", {"Authorization": f"Bearer {TOKEN}"}, 200),
        ("10.0.0.7", {"Authorization": f"bearer {TOKEN}"}, 200),
        ("10.0.0.7", {"Authorization": "Bearer"}, 403),
        ("10.0.0.7", {"Authorization": f"Bearer {TOKEN}x"}, 403),
        ("10.0.0.7", {"Authorization": "Bearer ü"}, 403),
        ("10.0.0.7", {"Authorization": f"Basic {TOKEN}"}, 403),
    ],
)
def test_metrics_need_loopback_or_the_token(
    client: Client, settings: Settings, address: str, headers: dict[str, str], status: int
) -> None:
    settings.METRICS_TOKEN = TOKEN
    assert client.get("/metrics", headers=headers, REMOTE_ADDR=address).status_code == status


def test_no_token_is_accepted_if_none_is_configured(client: Client) -> None:
    for token in ("", "x"):
        answer = client.get("/metrics", headers={"Authorization": f"Bearer {token}"}, REMOTE_ADDR="10.0.0.7")
        assert answer.status_code == 403


def test_the_metrics_add_up_the_rows_that_failed_in_each_process(client: Client, db: None) -> None:
    def fails(_: int) -> None:
        raise LookupError

    def job() -> int:
        return len(isolation.run_each_isolated(fails, {1: "one"}, failed=isolation.ignore))

    isolation.run_isolated("run_due_schedules", job)
    for kind in ("sweeper", "worker"):
        report(kind, timezone.now())
    assert metrics_of(client)["countersign_failed_rows run_due_schedules"] == 2


def test_a_job_that_fails_on_one_machine_and_succeeds_on_another_fails(client: Client, auditor: User) -> None:
    def fails() -> int:
        raise LookupError

    isolation.run_isolated("sync_if_due", fails, failed=jobs.record_job_failure)
    report("sweeper", timezone.now())
    jobs.record_heartbeat("sync_if_due")  # of another machine
    assert metrics_of(client)["countersign_job_failed sync_if_due"] == 1
    isolation._postponed_until.clear()
    isolation.run_isolated("sync_if_due", lambda: 0)
    report("sweeper", timezone.now())
    assert metrics_of(client)["countersign_job_failed sync_if_due"] == 0


def test_the_sweeper_heartbeat_is_rate_limited(db: None) -> None:
    jobs.record_heartbeat("send_due")
    first = Heartbeat.objects.get().at
    assert first is not None
    jobs.record_heartbeat("send_due")
    assert Heartbeat.objects.get().at == first
    Heartbeat.objects.update(at=first - jobs.HEARTBEAT_INTERVAL)
    jobs.record_heartbeat("send_due")
    assert Heartbeat.objects.filter(at__gte=first).exists()
