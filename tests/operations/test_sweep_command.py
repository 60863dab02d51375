"""`manage.py sweep`."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.integration.models import KnownKey
from backoffice.ledger.mirrored import Transaction
from backoffice.ledger.models import BalanceSnapshot
from backoffice.operations.models import Operation
from backoffice.operations.states import Status
from tests import factories
from tests.sandbox_process import SandboxProcess


@pytest.fixture(autouse=True)
def no_service(settings: Settings) -> None:
    """Nobody tells balances and keys, so that only what these tests prepare is done."""
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = "http://127.0.0.1:9/v2", "http://127.0.0.1:9/v4"


def test_one_round_does_what_is_due_and_says_how_much(maker: User) -> None:
    operation = factories.prepared(maker)
    Operation.objects.update(expires_at=timezone.now())
    said = StringIO()
    call_command("sweep", "--once", stdout=said)
    assert Operation.objects.get(pk=operation.pk).status == Status.EXPIRED
    assert said.getvalue() == "2 due and done\n"  # and the inspection


@pytest.mark.django_db
def test_a_round_without_work_changes_nothing() -> None:
    call_command("sweep", "--once", stdout=StringIO())
    said = StringIO()
    call_command("sweep", "--once", stdout=said)
    assert said.getvalue() == "0 due and done\n"


@pytest.mark.django_db
def test_a_round_keeps_the_balances_the_keys_and_the_transactions(sandbox: SandboxProcess) -> None:
    said = StringIO()
    call_command("sweep", "--once", stdout=said)
    kept = BalanceSnapshot.objects.get(currency="NGN")
    assert kept.amount == sandbox.balance("NGN")
    assert [key.name for key in KnownKey.objects.all()] == ["first key"]
    assert Transaction.objects.exists()
    assert said.getvalue() == "6 due and done\n"  # three balances, the keys, the inspection, the transactions
