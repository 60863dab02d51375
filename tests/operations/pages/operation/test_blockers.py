"""What people read of an operation that was released, was tried, and has not left."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from backoffice.core.web.formatting import local_time
from backoffice.operations.delivery import send
from backoffice.operations.delivery.release import record_blocker
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, CheckResult
from tests.operations.steps import show, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def panel_of(client: Client, operation: Operation) -> str:
    return text_of(show(client, operation)).partition('id="decision"')[2].partition("</aside>")[0]


def test_the_page_shows_the_blocker_since_when_and_until_when(
    provider: StubProvider, released: Operation, as_approver: Client
) -> None:
    assert "Released for sending" in panel_of(as_approver, released)
    provider.records = "nonsense"
    send.send_operation(released.pk)
    shown, release = panel_of(as_approver, released), Release.objects.get()
    assert "Not sent yet" in shown
    assert "The provider&#x27;s data could not be read." in shown
    with timezone.override("Africa/Lagos"):  # where the reader is
        assert f"since {local_time(release.blocked_since or release.released_at)}; nothing was sent" in shown
        assert f"until the release expires: {local_time(release.expires_at)}" in shown
    without_account = shown.replace(str(released.payload["account_number"]), "")
    assert (provider.posts, "123456" in without_account) == ([], False)


def seen_on(client: Client, operation: Operation) -> str:
    return str(show(client, operation).context["seen"])


def test_an_open_page_shows_a_blocker_and_its_end(
    provider: StubProvider, released: Operation, as_approver: Client
) -> None:
    before = seen_on(as_approver, released)
    provider.records = "nonsense"
    send.send_operation(released.pk)
    answer = show(as_approver, released, "live/", seen=before)
    assert "Not sent yet" in text_of(answer)
    before = seen_on(as_approver, released)
    assert show(as_approver, released, "live/", seen=before).status_code == 204
    record_blocker(released.pk, None)
    assert "Released for sending" in text_of(show(as_approver, released, "live/", seen=before))


def test_an_open_page_shows_what_the_last_check_found(unknown: Operation, as_approver: Client) -> None:
    before = seen_on(as_approver, unknown)
    Attempt.objects.update(check_result=CheckResult.PROVIDER_UNREADABLE, check_parameters={"error": "x"})
    assert "The provider&#x27;s data could not be read" in text_of(
        show(as_approver, unknown, "live/", seen=before)
    )


def test_a_blocker_keeps_its_first_time(provider: StubProvider, released: Operation) -> None:
    provider.records = "nonsense"
    send.send_operation(released.pk)
    since = Release.objects.get().released_at - timedelta(minutes=2)
    Release.objects.update(blocked_since=since)
    send.send_operation(released.pk)
    assert Release.objects.get().blocked_since == since


def test_a_resolved_blocker_is_cleared(released: Operation, as_approver: Client) -> None:
    record_blocker(released.pk, Blocker.PROVIDER_UNREADABLE, error="x")
    record_blocker(released.pk, None)
    assert "Released for sending" in panel_of(as_approver, released)


def test_a_new_release_has_no_blocker(provider: StubProvider, released: Operation) -> None:
    provider.records = "nonsense"
    send.send_operation(released.pk)
    provider.records = "[]"
    send.send_operation(released.pk)
    assert (len(provider.posts), Release.objects.count()) == (1, 0)
