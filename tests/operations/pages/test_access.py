"""Every address of operations against every role."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations import urls
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.reason_codes import IncidentKind
from tests import factories
from tests.ledger.stored_transactions import stored
from tests.operations.batches import payouts
from tests.recipients import recipient_files
from tests.requirements import opened_by

pytestmark = pytest.mark.django_db

ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
UNREACHABLE = "http://127.0.0.1:9/v2"

# What each role is answered with. Forms are posted empty: 422 and 302 mean that the person may.
#                     method  preparer approver auditor administrator outsider
ANSWERS = {
    "overview":         ("get",  200, 200, 200, 200, 200),
    "balances":         ("get",  200, 200, 200, 200, 403),
    "list":             ("get",  200, 200, 200, 200, 403),
    "bulk_approve":     ("post", 403, 302, 403, 302, 403),
    "bulk_reject":      ("post", 403, 302, 403, 302, 403),
    "bulk_send":        ("post", 403, 422, 403, 403, 403),
    "bulk_release":     ("get",  200, 200, 200, 200, 403),
    "bulk_release_live": ("get", 200, 200, 200, 200, 403),
    "payout_files":     ("get",  200, 403, 403, 403, 403),
    "payout_template":  ("get",  200, 403, 403, 403, 403),
    "bank_codes":       ("get",  200, 403, 403, 403, 403),
    "payout_file":      ("get",  200, 403, 403, 403, 403),
    "payout_file_live": ("get",  204, 403, 403, 403, 403),
    "payout_file_check": ("post", 422, 403, 403, 403, 403),
    "payout_file_submit": ("post", 302, 403, 403, 403, 403),
    "payout_file_delete": ("post", 302, 403, 403, 403, 403),
    "payout_file_errors": ("get", 200, 403, 403, 403, 403),
    "imported_rows":    ("get",  200, 200, 200, 200, 403),
    "batch":            ("get",  200, 200, 200, 200, 403),
    "batch_live":       ("get",  200, 200, 200, 200, 403),
    "batch_pause":      ("post", 302, 302, 403, 302, 403),
    "batch_resume":     ("post", 403, 302, 403, 403, 403),
    "batch_cancel":     ("post", 302, 302, 403, 302, 403),
    "batch_retry":      ("post", 302, 403, 403, 403, 403),
    "batch_retry_file": ("get",  302, 403, 403, 403, 403),
    "batch_retry_upload": ("post", 302, 403, 403, 403, 403),
    "saved_views":      ("post", 422, 422, 422, 422, 403),
    "saved_view_rename": ("post", 404, 404, 404, 404, 403),
    "saved_view_delete": ("post", 302, 302, 302, 302, 403),
    "investigation":    ("get",  200, 200, 200, 200, 403),
    "pause":            ("post", 422, 422, 403, 422, 403),
    "case":             ("get",  302, 302, 302, 302, 403),
    "evidence":         ("get",  204, 204, 204, 204, 403),
    "system":           ("get",  403, 403, 200, 200, 403),
    "incidents":        ("get",  200, 200, 200, 200, 403),
    "incident":         ("post", 403, 422, 403, 422, 403),
    "break_glass":      ("post", 403, 422, 403, 422, 403),
    "metrics":          ("get",  200, 200, 200, 200, 200),
    "search":           ("get",  200, 200, 200, 200, 403),
    "prepare":          ("post", 422, 403, 403, 403, 403),
    "prepare_check":    ("post", 200, 403, 403, 403, 403),
    "detail":           ("get",  200, 200, 200, 200, 403),
    "live":             ("get",  200, 200, 200, 200, 403),
    "receipt":          ("get",  200, 200, 200, 200, 403),
    "approve":          ("post", 403, 422, 403, 403, 403),
    "approve_and_send": ("post", 403, 422, 403, 403, 403),
    "reject":           ("post", 403, 422, 403, 403, 403),
    "release":          ("post", 403, 422, 403, 403, 403),
    "cancel":           ("post", 302, 403, 403, 403, 403),
    "check_status":     ("post", 302, 302, 403, 302, 403),
    "payment_refresh":  ("get",  404, 404, 404, 404, 403),
    "kind":             ("get",  200, 200, 200, 200, 403),
    "payments":         ("get",  200, 200, 200, 200, 403),
    "payments_refresh": ("get",  200, 200, 200, 200, 403),
    "reconciliation":   ("get",  200, 200, 200, 200, 403),
    "transactions":     ("get",  200, 200, 200, 200, 403),
    "transactions_count": ("get", 200, 200, 200, 200, 403),
    "transaction_summary": ("get", 200, 200, 200, 200, 403),
    "transaction_summary_now": ("get", 200, 200, 200, 200, 403),
    "saved_transaction_views": ("get", 200, 200, 200, 200, 403),
    "transaction":      ("get",  200, 200, 200, 200, 403),
}  # fmt: skip
KINDS_OF_ADDRESS: dict[str, list[object]] = {
    "kind": ["withdrawals"],
    "prepare": ["withdrawal"],
    "prepare_check": ["withdrawal"],
    "payout_template": ["transfer", "csv"],
    "bank_codes": ["csv"],
    "saved_view_rename": [1],
    "saved_view_delete": [1],
}
WITHOUT_OPERATION = {
    "overview",
    "balances",
    "list",
    "bulk_approve",
    "bulk_reject",
    "bulk_send",
    "saved_views",
    "investigation",
    "pause",
    "system",
    "incidents",
    "reconciliation",
    "metrics",
    "search",
    "payments",
    "payments_refresh",
    "payout_files",
    "transactions",
    "transactions_count",
    "transaction_summary",
    "transaction_summary_now",
    "saved_transaction_views",
}
FORMS = {
    "prepare",
    "bulk_approve",
    "bulk_reject",
    "bulk_send",
    "batch_retry",
    "saved_views",
    "saved_transaction_views",
    "pause",
    "search",
    "incident",
    "break_glass",
}  # their address is a page as well


def _arguments(name: str, preparer: User) -> list[object]:
    """What the address names, made for this test."""
    made: dict[str, Callable[[], object]] = {
        "break_glass": lambda: factories.break_glass(preparer).pk,
        "transaction": lambda: stored().pk,
        "bulk_release": lambda: factories.bulk_release(preparer).pk,
        "payout_file": lambda: payouts.checked(preparer, payouts.transfers(2)).pk,
        "imported_rows": lambda: recipient_files.prepared(preparer, recipient_files.users(2)).pk,
        "batch": lambda: payouts.prepared(preparer, payouts.transfers(2)).pk,
    }
    for begins_with, make in made.items():
        if name.startswith(begins_with):
            return [make()]
    return [factories.prepared(preparer).pk]


def address_of(name: str, preparer: User) -> str:
    if name == "incident":
        return incidents.raise_incident(
            factories.prepared(preparer), kind=IncidentKind.SECOND_DEBIT, evidence={}
        ).get_absolute_url()
    if name in WITHOUT_OPERATION:
        return reverse(f"operations:{name}")
    return reverse(f"operations:{name}", args=KINDS_OF_ADDRESS.get(name) or _arguments(name, preparer))


def test_access_table_covers_every_url() -> None:
    assert set(ANSWERS) == {pattern.name for pattern in urls.urlpatterns}


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="preparer"))
@pytest.mark.parametrize("name", ANSWERS)
def test_each_role_has_the_access_listed(
    sign_in: Callable[[Client, User], Client],
    request: pytest.FixtureRequest,
    settings: Settings,
    preparer: User,
    name: str,
    role: str,
) -> None:
    method, *answers = ANSWERS[name]
    client = sign_in(Client(), request.getfixturevalue(role))
    settings.GATEWAY_URL = UNREACHABLE
    answer = getattr(client, str(method))(address_of(name, preparer))
    assert answer.status_code == answers[ROLES.index(role)]


@pytest.mark.parametrize(
    "name", [name for name, row in ANSWERS.items() if row[0] == "post" and name not in FORMS]
)
def test_get_is_refused_for_views_that_change_data(
    sign_in: Callable[[Client, User], Client], preparer: User, name: str
) -> None:
    assert sign_in(Client(), preparer).get(address_of(name, preparer)).status_code == 405
