"""What is refused, and what breaks, neither shows nor writes a secret."""

import pytest
from pytest_django import Settings

from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.states import Status
from tests.core.secrets.canaries import Canaries, Sinks
from tests.core.secrets.steps import Reader, prepare, release_operation, status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_refused_form_does_not_render_its_secrets(
    provider: StubProvider, sinks: Sinks, as_preparer: Reader, as_approver: Reader, canaries: Canaries
) -> None:
    operation = prepare(as_preparer)
    stale = release_operation(
        as_approver, operation, "approve-and-send", canaries, digest="of something else"
    )
    own = release_operation(as_preparer, operation, "approve-and-send", canaries)
    too_soon = release_operation(as_approver, operation, "release", canaries)
    wrong_password = as_approver.post(
        "/account/password/", {"old_password": canaries.password + " ", "new_password": canaries.password}
    )
    assert [answer.status_code for answer in (stale, own, too_soon, wrong_password)] == [422, 403, 422, 422]
    assert Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).count() == 2
    assert sinks.leaks() == set()


def test_an_internal_error_shows_and_logs_no_secret(
    provider: StubProvider,
    sinks: Sinks,
    as_preparer: Reader,
    as_approver: Reader,
    canaries: Canaries,
    settings: Settings,
) -> None:
    operation = prepare(as_preparer)
    settings.ENCRYPTION_KEYS = ["broken"]
    assert release_operation(as_approver, operation, "approve-and-send", canaries).status_code == 500
    assert as_approver.post("/account/second-factor/", {"code": "123456"}).status_code == 500
    assert sinks.log_lines().count("ImproperlyConfigured: COUNTERSIGN_ENCRYPTION_KEYS") == 2
    assert status_of(operation) == Status.PENDING
    assert sinks.leaks() == set()
