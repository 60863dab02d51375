"""`manage.py sweep`."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.models import Operation
from backoffice.operations.states import Status
from tests import factories


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
