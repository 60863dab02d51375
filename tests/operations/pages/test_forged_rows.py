"""Rows that only someone writes who has the whole database: a page shows them as they are, and all others."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.db import connection
from django.db.models import JSONField, Value
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.approval.requirements import levels_of_many
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.operations.forgeries import forge_entry, make_unreadable
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db
TAG = re.compile(r"<[^>]*>")
SignIn = Callable[[Client, User], Client]
TARGET = "operations.operation"


@pytest.fixture
def reader(auditor: User, sign_in: SignIn) -> Client:
    return sign_in(Client(), auditor)


def shown_at(reader: Client, address: str) -> str:
    """The words of the page."""
    answer = reader.get(address)
    assert answer.status_code == 200
    return " ".join(unescape(TAG.sub(" ", text_of(answer))).split())


@pytest.mark.parametrize(
    ("action", "detail", "shown"),
    [
        (Action.OPERATION_APPROVED, [5], "Details Cannot be read: [5]"),
        (Action.OPERATION_APPROVED, "forged", "Details Cannot be read: forged"),
        (Action.OPERATION_ACTION_REFUSED, {"refusal": []}, "Refusal Cannot be read: []"),
        (Action.OPERATION_ACTION_REFUSED, {"refusal": {"code": {}}}, "Refusal Cannot be read: {'code': {}}"),
        (
            Action.OPERATION_ACTION_REFUSED,
            {"attempted": "send", "refusal": {"code": "x"}},
            "Refusal Cannot be read: {'code': 'x'}",
        ),
        (Action.OPERATION_ESCALATED, {"check": {"code": "x"}}, "Check Cannot be read: {'code': 'x'}"),
        (Action.OPERATION_ACCEPTED, {"response": {"code": "x"}}, "Response Cannot be read: {'code': 'x'}"),
        (Action.INCIDENT_RAISED, {"incident": "x"}, "Incident Cannot be read: x"),
        (
            Action.INCIDENT_RAISED,
            {"evidence": {"amount": "x"}},
            "Evidence amount: Cannot be read: {'amount': 'x'}",
        ),
        (Action.LOG_VERIFIED, {"fault": {"position": "x"}}, "Fault Cannot be read: {'position': 'x'}"),
        (Action.OPERATION_WAITING_ESCALATED, [], "Details Cannot be read: []"),
        ("forged.action", {}, "forged.action"),
    ],
)
def test_a_forged_entry_is_shown_as_it_is_with_all_others(
    reader: Client, operation: Operation, action: str, detail: object, shown: str
) -> None:
    forged = forge_entry(action, TARGET, str(operation.pk), detail)
    log = shown_at(reader, reverse("audit:list"))
    assert shown in log
    assert f"Entry {forged.position} · {action}" in log
    assert f"Entry {forged.position - 1} · operation.prepared" in log
    page = shown_at(reader, operation.get_absolute_url())
    assert "prepared" in page
    receipt = shown_at(reader, reverse("operations:receipt", args=[operation.pk]))
    assert all(
        f"audit entry {position}" in receipt for position in Entry.objects.values_list("pk", flat=True)
    )


HUGE = "9" * 5000  # more digits than Python reads
FORGED_COLUMN = {
    "at": "UPDATE audit_entry SET at = %s WHERE position = %s",
    "detail": "UPDATE audit_entry SET detail = %s WHERE position = %s",
}


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("at", "infinity"),
        ("at", "some day"),
        ("at", "2026-13-45 00:00:00"),
        ("detail", HUGE),
    ],
)
def test_an_entry_that_cannot_be_loaded_is_named_among_all_others(
    reader: Client, as_preparer: Client, operation: Operation, column: str, stored: str
) -> None:
    if connection.vendor == "postgresql" and stored not in ("infinity", HUGE):
        pytest.skip("PostgreSQL does not store it")
    lost = forge_entry(Action.OPERATION_APPROVED, TARGET, str(operation.pk)).position
    forge_entry(Action.OPERATION_ESCALATED, TARGET, str(operation.pk))
    with lifted(connection), connection.cursor() as cursor:
        cursor.execute(FORGED_COLUMN[column], [stored, lost])
    named = f"Entry {lost} of the audit log cannot be read."
    log = shown_at(reader, reverse("audit:list"))
    assert named in log
    assert [f"Entry {position} · " in log for position in (lost - 1, lost, lost + 1)] == [True, False, True]
    page = shown_at(reader, operation.get_absolute_url())
    assert f"{named} Verify the audit log" in page
    assert "prepared this operation" in page
    receipt = shown_at(reader, reverse("operations:receipt", args=[operation.pk]))
    assert [f"audit entry {position}" in receipt for position in (lost - 1, lost, lost + 1)] == [
        True,
        False,
        True,
    ]
    to_preparer = shown_at(as_preparer, operation.get_absolute_url())
    assert f"Entry {lost} of the audit log cannot be read. An auditor must verify the log." in to_preparer


def test_pages_of_the_log_go_on_behind_entries_that_cannot_be_loaded(reader: Client, preparer: User) -> None:
    for _ in range(40):
        forge_entry(Action.OPERATION_PREPARED, TARGET, "x")
    with lifted(connection), connection.cursor() as cursor:
        when = "some day" if connection.vendor == "sqlite" else "infinity"
        cursor.execute("UPDATE audit_entry SET at = %s WHERE position > 3", [when])
    first = reader.get(reverse("audit:list")).context["page"]
    assert all(entry.is_unreadable for entry in first.rows)
    second = reader.get(reverse("audit:list"), {"cursor": first.next_cursor}).context["page"]
    assert second.rows[0].position == first.rows[-1].position - 1
    assert [entry.is_unreadable for entry in second.rows[-4:]] == [True, False, False, False]


@pytest.mark.parametrize("refusal", [None, [], {"code": "x"}, {"code": {}}])
def test_a_forged_reason_why_nothing_was_sent_ends_no_page(
    reader: Client, released: Operation, refusal: object
) -> None:
    with lifted(connection):
        Release.objects.all().delete()
    forge_entry(
        Action.OPERATION_ACTION_REFUSED,
        TARGET,
        str(released.pk),
        {"attempted": "send", "refusal": refusal},
    )
    assert f"Cannot be read: {refusal}" in shown_at(reader, released.get_absolute_url())


@pytest.mark.parametrize(
    ("evidence", "shown"),
    [
        ([5], "Evidence Cannot be read: [5]"),
        ({"amount": "12"}, "Amount Cannot be read: {'amount': '12'}"),
        ({"on_record": {"outcome": "x"}}, "Recorded outcome Cannot be read: {'outcome': 'x'}"),
        ({"differences": [{}]}, "Differences Cannot be read: [{}]"),
        ({"faults": ["x"]}, "Contradiction Cannot be read: ['x']"),
        ({"lost": [{"started_at": 5}]}, "Sent, but missing from the database Cannot be read"),
        ({"undelivered": {}}, "Raised"),
    ],
)
def test_the_forged_evidence_of_an_incident_is_shown_as_it_is(
    reader: Client, operation: Operation, evidence: object, shown: str
) -> None:
    forged = incidents.raise_incident(
        operation, kind=IncidentKind.SECOND_DEBIT, evidence={"transaction": "T-1"}
    )
    other = incidents.raise_incident(operation, kind=IncidentKind.NOT_LISTED, evidence={"transaction": "T-2"})
    with lifted(connection):
        Incident.objects.filter(pk=forged.pk).update(evidence=Value(evidence, JSONField()))
    assert shown in shown_at(reader, forged.get_absolute_url())
    page = shown_at(reader, reverse("operations:incidents"))
    assert str(forged.sentence) in page
    assert str(other.sentence) in page
    assert "2 open incidents" in shown_at(reader, "/")
    assert str(other.sentence) in shown_at(reader, operation.get_absolute_url())


@pytest.mark.parametrize("evidence", [[], {"lost": 5}, {"lost": [5, {"started_at": "x"}]}])
def test_the_forged_evidence_of_a_restore_ends_no_page(
    reader: Client, operation: Operation, evidence: object
) -> None:
    found = factories.incident_of_restore()
    with lifted(connection):
        Incident.objects.filter(pk=found.pk).update(evidence=Value(evidence, JSONField()))
    assert "Attempts in the journal" in shown_at(reader, found.get_absolute_url())


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (Operation, {"rule": {"code": "x"}}),
        (Operation, {"rule": [5]}),
        (Release, {"blocker": "list_changing", "blocker_parameters": [5], "blocked_since": timezone.now()}),
    ],
)
def test_forged_codes_of_an_operation_are_shown_as_they_are(
    reader: Client, released: Operation, model: type[Operation | Release], columns: dict[str, object]
) -> None:
    key = "pk" if model is Operation else "operation"
    with lifted(connection):
        model.objects.filter(**{key: released.pk}).update(**columns)
    assert "Cannot be read: " in shown_at(reader, released.get_absolute_url())
    assert "audit entry 1" in shown_at(reader, reverse("operations:receipt", args=[released.pk]))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "columns", [{"responses": [{}]}, {"responses": 5}, {"check_result": "x"}, {"name_not_checked": "x"}]
)
def test_forged_codes_of_an_attempt_are_shown_as_they_are(
    reader: Client, unknown: Operation, columns: dict[str, object]
) -> None:
    with lifted(connection):
        Attempt.objects.filter(operation=unknown).update(**columns)
    assert "Cannot be read: " in shown_at(reader, unknown.get_absolute_url())
    assert unknown.reference in shown_at(reader, reverse("operations:investigation"))


@pytest.mark.parametrize("columns", [{"rule": []}, {"rule": 5}, {"levels": []}, {"levels": [{"needed": 0}]}])
def test_forged_terms_of_an_operation_keep_it_out_of_what_can_be_approved(
    as_approver: Client, operation: Operation, preparer: User, columns: dict[str, object]
) -> None:
    other = factories.prepared(preparer, amount=5_000)
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(**columns)
    assert operation.reference in shown_at(as_approver, operation.get_absolute_url())
    assert other.reference in shown_at(as_approver, reverse("operations:list"))
    assert other.reference in shown_at(as_approver, "/")


def test_levels_that_were_put_right_are_read_again(operation: Operation) -> None:
    levels = operation.levels
    for forged, found in (([], False), (levels, True)):
        with lifted(connection):
            Operation.objects.filter(pk=operation.pk).update(levels=forged)
        operation.refresh_from_db()
        assert (operation.pk in levels_of_many([operation])) is found


def test_forged_roles_of_an_account_change_end_no_page(reader: Client, approver: User) -> None:
    change = factories.break_glass(approver)
    with lifted(connection):
        BreakGlassChange.objects.update(roles=5)
    assert str(approver) in shown_at(reader, reverse("operations:break_glass", args=[change.pk]))


def test_an_unknown_outcome_ends_no_page(reader: Client, operation: Operation) -> None:
    factories.attempt(operation, outcome="forged", closed_at=timezone.now())
    assert operation.reference in shown_at(reader, operation.get_absolute_url())
    assert operation.reference in shown_at(reader, reverse("operations:receipt", args=[operation.pk]))


@pytest.mark.parametrize("column", ["payload", "rule", "levels", "closing_reason"])
@pytest.mark.parametrize("role", ["preparer", "approver", "administrator"])
def test_an_operation_that_cannot_be_loaded_fails_no_page(
    request: pytest.FixtureRequest,
    sign_in: SignIn,
    preparer: User,
    approver: User,
    role: str,
    column: str,
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    altered, other = factories.prepared(preparer), factories.prepared_to_another_account(preparer)
    for one in (altered, batch):
        make_unreadable(one, column)
    reader = sign_in(Client(), request.getfixturevalue(role))
    assert shown_at(reader, reverse("operations:overview"))
    listed = shown_at(reader, f"{reverse('operations:list')}?tab=all")
    assert altered.reference in listed
    assert other.reference in listed
    for address in (altered.get_absolute_url(), reverse("operations:batch", args=[batch.pk])):
        is_named = "cannot read the content" in shown_at(reader, address)
        assert is_named == (column == "payload")
