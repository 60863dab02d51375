"""The main job with all its failures: no secret stays anywhere."""

import pytest
from django.utils import timezone

from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.otp import UsedOtp
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import AWAITING_PROVIDER, Outcome, Status
from tests.core.secrets.canaries import Canaries, Sinks
from tests.core.secrets.steps import Reader, answer_with, open_pages, prepare, release_operation, status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_stored_one_time_code_is_not_readable_anywhere(
    provider: StubProvider, sinks: Sinks, as_preparer: Reader, as_approver: Reader, canaries: Canaries
) -> None:
    operation = prepare(as_preparer)
    assert release_operation(as_approver, operation, "approve-and-send", canaries).status_code == 302
    release = Release.objects.get(operation=operation)
    assert release.encrypted_otp
    open_pages(as_approver, operation)
    assert sinks.leaks() == set()
    send.send_operation(operation.pk)
    assert canaries.otp in provider.posts[-1]
    assert not Release.objects.exists()
    assert sinks.leaks() == set()


ANSWERS: list[tuple[int, object, Status]] = [
    (200, {"data": {"transactionId": "T-1", "note": "{echo}"}}, Status.PROCESSING),
    (400, {"success": False, "message": "Invalid OTP token: {echo}", "errors": ["{echo}"]}, Status.APPROVED),
    (422, {"success": False, "message": "Insufficient funds for {echo}"}, Status.FAILED),
    (500, {"message": "Internal error: {echo}"}, Status.UNKNOWN),
    (502, "<html>{echo}</html>", Status.UNKNOWN),
    (200, "{echo} is no JSON", Status.UNKNOWN),
]


def test_a_one_time_code_echoed_by_the_provider_is_not_stored(
    provider: StubProvider, sinks: Sinks, as_preparer: Reader, as_approver: Reader, canaries: Canaries
) -> None:
    for status, body, ends in ANSWERS:
        provider.records = "[]"
        operation = prepare(as_preparer)
        release_operation(as_approver, operation, "approve-and-send", canaries)
        answer_with(provider, status, body, canaries)
        send.send_operation(operation.pk)
        assert status_of(operation) == ends
        provider.records = f"{canaries.api_key} is no list"
        confirmation.confirm_operation(operation.pk)
        open_pages(as_approver, operation)
        end(operation)
    assert sinks.leaks() == set()


def end(operation: Operation) -> None:
    """Close what is open of it: while its outcome is not known, the same cannot be prepared again, nor the same code
    entered.
    """
    UsedOtp.objects.all().delete()
    now = timezone.now()
    Attempt.objects.filter(operation=operation, closed_at__isnull=True).update(
        closed_at=now, outcome=Outcome.FAILED, next_check_at=None
    )
    still_open = Operation.objects.filter(pk=operation.pk, status__in=AWAITING_PROVIDER)
    still_open.update(status=Status.FAILED, closed_at=now)
