"""An installation that ran before named and taken transactions were told apart."""

from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations import services
from backoffice.operations.models import Attempt
from tests import factories
from tests.operations.cases import record, shows
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)
tell = import_module("backoffice.operations.migrations.0017_named_before").tell


@pytest.mark.parametrize(("answer", "is_named"), [('{"transactionId": "T-1"}', True), ("{}", False)])
def test_the_audit_log_tells_what_an_answer_had_named(
    service: StubService, maker: User, checker: User, answer: str, is_named: bool
) -> None:
    shows(service)
    service.answer_post = lambda: (200, f'{{"data": {answer}}}')
    operation = factories.release(factories.approved(maker, checker), checker)
    services.send_operation(operation.pk)
    shows(service, record("T-1", "processing"))
    services.confirm_operation(operation.pk)
    Attempt.objects.update(named_at=None)
    tell(apps, None)
    attempt = Attempt.objects.get()
    assert attempt.service_transaction_id == "T-1"
    assert (attempt.named_at is not None) == is_named
    assert attempt.named_at is None or attempt.named_at <= timezone.now()
