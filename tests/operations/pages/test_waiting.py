"""The overview: what waits for each person, and the balances above it."""

from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.ledger.models import Balance
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.overview import SHOWN_PER_GROUP
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.conftest import SignIn
from tests.operations.pages.page_text import LIST, balance, page, references
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db


def test_the_overview_shows_the_last_reported_balances_at_once(
    client: Client, sign_in: SignIn, auditor: User
) -> None:
    balance()
    html = page(sign_in(client, auditor), "/")
    assert "8,412,090.55" in html
    assert "Last reported" in html
    assert 'hx-get="/balances/"' in html


def test_balances_are_read_from_the_provider_and_stored(
    client: Client, sign_in: SignIn, auditor: User, sandbox: SandboxProcess
) -> None:
    html = page(sign_in(client, auditor), "/balances/")
    kept = Balance.objects.get(currency="NGN")
    assert kept.amount == sandbox.balance("NGN")
    assert f"{kept.amount:,.2f}" in html


def test_an_unreachable_provider_shows_the_last_reported_balances_and_an_error(
    client: Client, sign_in: SignIn, auditor: User, settings: Settings
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    balance()
    html = page(sign_in(client, auditor), "/balances/")
    assert "8,412,090.55" in html
    assert "Not refreshed: The provider cannot be reached, or does not respond in time." in html
    assert '<a href="/">Try again now</a>' in html


def test_an_unreachable_provider_without_earlier_balances_is_reported(
    client: Client, sign_in: SignIn, auditor: User, settings: Settings
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    html = page(sign_in(client, auditor), "/balances/")
    assert "Not loaded: The provider cannot be reached, or does not respond in time." in html
    assert "Loading balances" not in html
    assert '<a href="/">Try again now</a>' in html


def test_own_operations_never_wait_for_their_preparer(
    client: Client, sign_in: SignIn, preparer: User, approver: User
) -> None:
    theirs = factories.prepared(preparer)
    approver.groups.add(*preparer.groups.all())
    own = factories.prepared(approver)
    assert references(page(sign_in(client, approver), LIST), theirs, own) == [True, False]


def test_an_operation_does_not_wait_for_who_already_approved_it(
    client: Client, sign_in: SignIn, preparer: User, approver: User
) -> None:
    operation = factories.prepared(preparer, amount=Decimal("10000001"))
    approvals.approve_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now()
    )
    assert references(page(sign_in(client, approver), LIST), operation) == [False]


def test_the_number_waiting_is_on_every_page(
    client: Client, sign_in: SignIn, preparer: User, approver: User
) -> None:
    factories.prepared(preparer)
    html = page(sign_in(client, approver), "/account/")
    assert '<b class="count">1</b> <span>waiting for you</span>' in html


def test_the_overview_counts_all_waiting_operations_and_shows_the_first(
    client: Client, sign_in: SignIn, preparer: User, approver: User
) -> None:
    balance()
    for _ in range(8):
        factories.prepared(preparer)
    html = page(sign_in(client, approver), "/")
    waiting = html.partition("Waiting for me</h2>")[2].partition("</section>")[0]
    assert waiting.count('class="row"') == SHOWN_PER_GROUP
    assert '<a href="/operations/?tab=waiting">View all 8 operations</a>' in waiting
    assert '<b class="count">8</b> <span>waiting for you</span>' in html


def test_nothing_waits_for_users_who_cannot_decide(
    client: Client, sign_in: SignIn, preparer: User, auditor: User
) -> None:
    factories.prepared(preparer)
    html = page(sign_in(client, auditor), LIST)
    assert "waiting for you" not in html
    assert "Waiting for me" not in html


def test_an_unknown_outcome_needs_attention(
    client: Client, sign_in: SignIn, preparer: User, auditor: User
) -> None:
    operation = factories.prepared(preparer)
    Operation.objects.filter(pk=operation.pk).update(status="approved")
    Operation.objects.filter(pk=operation.pk).update(status="sending")
    Operation.objects.filter(pk=operation.pk).update(status="unknown")
    html = page(sign_in(client, auditor), "/")
    assert "No operation has an unknown outcome" not in html
    assert html.index("Needs attention") < html.rindex(operation.reference)


def test_a_user_without_a_role_is_told_what_to_do(
    client: Client, sign_in: SignIn, outsider: User, preparer: User
) -> None:
    operation = factories.prepared(preparer)
    html = page(sign_in(client, outsider), "/")
    assert "You have no role yet" in html
    assert references(html, operation) == [False]
