"""What the decision panel shows beside its buttons: what is decided, what it debits, and who must approve it."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.core.web.formatting import local_day
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.kinds.staff import changes
from tests.operations.pages.page_text import balance
from tests.operations.steps import charge, put, show, text_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]


def panel_of(client: Client, operation: Operation) -> str:
    """The text of the panel on one line."""
    html = text_of(show(client, operation)).partition('id="decision"')[2].partition("</aside>")[0]
    return " ".join(strip_tags(html).split())


def test_the_panel_shows_amount_recipient_and_whole_account(
    as_approver: Client, operation: Operation
) -> None:
    shown = panel_of(as_approver, operation)
    assert "Amount NGN 250,000.00 Recipient ADA CHIDINMA OBI Account 0123456789 · Access Bank (044)" in shown


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("transfer", "Recipient ngozi.eze, user of the provider"),
        ("wallet_transfer", "Network TRC20 Recipient address TR7N HqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"),
        ("payment", "Total debit None: the customer pays in"),
        ("conversion", "You sell NGN 1,540,000.00 You buy USD"),
        ("callback_url", "New URL"),
    ],
)
def test_the_panel_shows_what_each_kind_moves_and_to_whom(
    as_approver: Client, preparer: User, kind: str, shown: str
) -> None:
    preparer.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
    operation = factories.prepared_of_kind(kind, SAMPLES[kind], preparer)
    assert shown.replace(" ", "") in panel_of(as_approver, operation).replace(" ", "")


def test_the_fee_is_not_known_before_sending_and_the_balance_has_its_age(
    as_approver: Client, operation: Operation
) -> None:
    balance(amount="8412090.55")
    shown = panel_of(as_approver, operation)
    assert "Fee Not reported before sending Total debit NGN 250,000.00 plus fee" in shown
    assert "Balance after NGN 8,162,090.55 less fee (last reported less than 1 min ago)" in shown


@pytest.mark.parametrize("statuses", [(), ("approved",)])
def test_the_fee_of_the_last_time_is_shown_as_that(
    as_approver: Client, preparer: User, operation: Operation, statuses: tuple[str, ...]
) -> None:
    charge("withdrawal", preparer, "50", days_ago=4)
    charge("withdrawal", preparer, "45", days_ago=9)
    charge("withdrawal", preparer, None, days_ago=1)
    put(operation, *statuses)
    with timezone.override("Africa/Lagos"):  # where the reader is
        day = local_day(timezone.now() - timedelta(days=4))
    shown = panel_of(as_approver, operation)
    assert f"Fee Not reported before sending Last time: NGN 50.00 on {day} Total debit" in shown


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("transfer", {}), ("withdrawal", {"currency": "USD"}), ("wallet_transfer", {"currency": "NGN"})],
    ids=["kind", "currency", "kind on a network"],
)
def test_the_fee_of_another_kind_or_currency_is_not_shown(
    as_approver: Client, preparer: User, operation: Operation, kind: str, changes: dict[str, Any]
) -> None:
    charge(kind, preparer, "50", **changes)
    assert "Last time" not in panel_of(as_approver, operation)


def test_the_fee_of_what_did_not_succeed_is_not_shown(
    as_approver: Client, preparer: User, operation: Operation
) -> None:
    failed = factories.prepared_to_another_account(preparer)
    factories.attempt(put(failed, "approved", "sending", "unknown"), fee=Decimal(50))
    assert "Last time" not in panel_of(as_approver, operation)


def test_the_last_fee_is_that_on_the_same_network(as_approver: Client, preparer: User) -> None:
    operation = factories.prepared_of_kind("wallet_transfer", SAMPLES["wallet_transfer"], preparer)
    charge("wallet_transfer", preparer, "0.2", network="POLYGON")
    assert "Last time" not in panel_of(as_approver, operation)
    charge("wallet_transfer", preparer, "1", days_ago=3)
    assert "Last time: USDT 1.000000 on" in panel_of(as_approver, operation)


def test_a_balance_that_does_not_cover_the_amount_is_named(as_approver: Client, operation: Operation) -> None:
    balance(amount="249999.99")
    assert "Balance after Balance too low: NGN 249,999.99 (last reported " in panel_of(as_approver, operation)


def test_a_balance_that_was_never_read_is_not_invented(as_approver: Client, operation: Operation) -> None:
    assert "Balance after Not known: no balance has been reported yet" in panel_of(as_approver, operation)


def test_who_may_still_approve_is_named_and_who_may_not_is_left_out(
    as_approver: Client, preparer: User, second_approver: User
) -> None:
    third, gone = factories.person("Bisi Ojo", Role.APPROVER), factories.person("Uche Obi", Role.APPROVER)
    staff.deactivate_staff(gone.pk, actor=None)
    staff.set_roles(preparer.pk, roles=[Role.PREPARER, Role.APPROVER], actor=None)
    operation = factories.prepared(preparer, amount=Decimal(10_000_001))
    shown = panel_of(as_approver, operation)
    rule = "Amounts above NGN 10,000,000.00 require two approvers who are not the preparer."
    assert f"Approvals 0 of 2 given · {rule} Can approve Amara Okafor, Bisi Ojo, Chidi Nwosu Expiry" in shown
    assert "Tunde Bello · prepared it" in shown
    assert "Uche Obi · deactivated" in shown
    factories.approve(operation, third)
    shown = panel_of(as_approver, operation)
    assert f"Approvals 1 of 2 given (Bisi Ojo) · {rule} Can approve Amara Okafor, Chidi Nwosu Expiry" in shown
    assert "Bisi Ojo · approved already" in shown


def test_too_few_approvers_are_reported_with_the_next_step(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operation = factories.prepared(preparer, amount=Decimal(10_000_001))
    assert "Can approve Amara Okafor 1 more approver is needed. Ask an administrator" in panel_of(
        as_approver, operation
    )


def test_the_role_that_is_missing_is_that_of_the_kind(
    client: Client, sign_in: SignIn, administrator: User, second_administrator: User, approver: User
) -> None:
    operation = changes.proposed(
        changes.rights(second_administrator, Role.ADMINISTRATOR, Role.AUDITOR), administrator
    )
    assert (
        "1 more approver is needed. Ask an administrator to give another person the role Administrator."
        in (panel_of(sign_in(client, administrator), operation))
    )


def test_an_approved_operation_shows_who_approved_it(
    as_preparer: Client, preparer: User, approver: User
) -> None:
    shown = panel_of(as_preparer, factories.approved(preparer, approver))
    assert "Approvals 1 of 1 given (Amara Okafor) Expiry" in shown
    assert "Can approve" not in shown


def test_warnings_stand_above_the_buttons(as_approver: Client, preparer: User) -> None:
    operation = factories.prepared(preparer, typed_name="Somebody Else", name_reason="Married name")
    shown = panel_of(as_approver, operation)
    assert shown.index("The name at the bank is ADA CHIDINMA OBI") < shown.index("Approve and send")


@pytest.mark.parametrize("person", ["preparer", "approver", "auditor"])
@pytest.mark.parametrize("statuses", [(), ("approved",), ("approved", "sending", "unknown")])
def test_the_page_takes_few_queries(  # noqa: PLR0917
    sign_in: SignIn,
    approver: User,
    auditor: User,
    operation: Operation,
    request: pytest.FixtureRequest,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    person: str,
    statuses: tuple[str, ...],
) -> None:
    balance()
    charge("withdrawal", operation.preparer, "50")
    put(operation, *statuses)
    client = sign_in(Client(), request.getfixturevalue(person))
    show(client, operation)  # the counts in the menu and the pause are cached for a second
    with django_assert_max_num_queries(6):
        show(client, operation)
