"""`manage.py sweep`."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.ledger.models import BalanceSnapshot
from backoffice.operations.models import Operation
from backoffice.operations.states import Status
from tests import factories
from tests.sandbox_process import SandboxProcess


@pytest.fixture(autouse=True)
def no_service(settings: Settings) -> None:
    """Nobody tells the balances, so that only what these tests prepare is done."""
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"


def test_one_round_does_what_is_due_and_says_how_much(maker: User) -> None:
    operation = factories.prepared(maker)
    Operation.objects.update(expires_at=timezone.now())
    said = StringIO()
    call_command("sweep", "--once", stdout=said)
    assert Operation.objects.get(pk=operation.pk).status == Status.EXPIRED
    assert said.getvalue() == "1 due and done\n"


@pytest.mark.django_db
def test_a_round_without_work_changes_nothing() -> None:
    said = StringIO()
    call_command("sweep", "--once", stdout=said)
    assert said.getvalue() == "0 due and done\n"


@pytest.mark.django_db
def test_a_round_keeps_the_balances(sandbox: SandboxProcess) -> None:
    said = StringIO()
    call_command("sweep", "--once", stdout=said)
    kept = BalanceSnapshot.objects.get(currency="NGN")
    assert kept.amount == sandbox.balance("NGN")
    assert said.getvalue() == "3 due and done\n"
