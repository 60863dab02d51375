"""The pages, their addresses against every role, the metrics and the checks of the configuration."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.checks import run_checks
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.notifications import preferences, urls
from backoffice.notifications.delivery import deliver_email_due
from backoffice.notifications.models import Message
from backoffice.notifications.recording.audit_feed import record_events_due
from backoffice.operations.monitoring.metrics import render_metrics
from tests import factories
from tests.notifications.receivers import MailServer
from tests.notifications.steps import make_due

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")

# What each role is answered with. Forms are posted empty: 422 and 302 mean that the person may.
#                          method  preparer approver auditor administrator outsider
ANSWERS = {
    "preferences":         ("get",  200, 200, 200, 200, 200),
    "chat_channel":        ("post", 422, 422, 422, 422, 422),
    "delete_chat_channel": ("post", 302, 302, 302, 302, 302),
    "send_test":           ("post", 302, 302, 302, 302, 302),
    "undelivered":         ("get",  403, 403, 200, 200, 403),
}  # fmt: skip


def test_the_table_covers_every_address() -> None:
    assert set(ANSWERS) == {pattern.name for pattern in urls.urlpatterns}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("role", ROLES)
def test_every_address_for_every_role(
    request: pytest.FixtureRequest, client: Client, sign_in: SignIn, name: str, role: str
) -> None:
    method, *answers = ANSWERS[name]
    signed_in = sign_in(client, request.getfixturevalue(role))
    answer = getattr(signed_in, str(method))(reverse(f"notifications:{name}"))
    assert answer.status_code == answers[ROLES.index(role)]


@pytest.mark.parametrize("name", ANSWERS)
def test_every_address_asks_strangers_to_sign_in(client: Client, name: str) -> None:
    answer = client.get(reverse(f"notifications:{name}"))
    assert "sign-in" in answer["Location"]


@pytest.fixture
def undelivered(preparer: User, approver: User, mailbox: MailServer, settings: Settings) -> Message:
    factories.prepared(preparer)
    record_events_due()
    settings.EMAIL_PORT = 1  # where nobody listens
    deliver_email_due()
    return Message.objects.get()


def test_undelivered_messages_are_listed_with_the_problem(
    client: Client,
    undelivered: Message,
    administrator: User,
    sign_in: SignIn,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    signed_in = sign_in(client, administrator)
    with django_assert_max_num_queries(6):
        page = signed_in.get(reverse("notifications:undelivered")).content.decode()
    assert "The server cannot be reached, or did not respond." in page
    assert "Amara Okafor" in page
    make_due(hours=80)
    deliver_email_due()
    assert "Delivery stopped" in signed_in.get(reverse("notifications:undelivered")).content.decode()
    Message.objects.update(delivered_at=timezone.now(), given_up_at=None)
    page = signed_in.get(reverse("notifications:undelivered")).content.decode()
    assert "Every notification was delivered." in page


def test_the_system_page_links_to_them(
    client: Client, undelivered: Message, auditor: User, sign_in: SignIn
) -> None:
    page = sign_in(client, auditor).get(reverse("operations:system")).content.decode()
    assert reverse("notifications:undelivered") in page
    assert '<dd class="bad">1</dd>' in page


def test_the_page_of_choices_stays_within_its_queries(
    client: Client, preparer: User, sign_in: SignIn, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    signed_in = sign_in(client, preparer)
    with django_assert_max_num_queries(6):
        signed_in.get(reverse("notifications:preferences"))


def test_undelivered_messages_are_counted_in_the_metrics(undelivered: Message) -> None:
    metrics = render_metrics().decode()
    assert 'countersign_notifications_due{channel="email"} 1.0' in metrics
    assert 'countersign_notifications_given_up{channel="email"} 0.0' in metrics
    assert 'countersign_notifications_oldest_due_age_seconds{channel="chat"} 0.0' in metrics
    make_due(hours=80)
    deliver_email_due()
    assert 'countersign_notifications_given_up{channel="email"} 1.0' in render_metrics().decode()


def deployment_findings() -> set[str | None]:
    found = {one.id for one in run_checks(include_deployment_checks=True)}
    return {one for one in found if one and one.startswith("notifications.")}


def test_a_deployment_without_a_channel_is_warned(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert deployment_findings() == {"notifications.W001"}
    settings.NOTIFY_CHATS = ["tgram://123456789:abcdefg_hijklmnop/12315544/"]
    assert deployment_findings() == set()


def test_a_chat_url_or_a_group_that_is_wrong_is_found_before_the_start(settings: Settings) -> None:
    settings.NOTIFY_CHATS, settings.NOTIFY_SHARED_GROUPS = ["slack://nothing"], ["payments", "moon"]
    assert deployment_findings() == {"notifications.E001", "notifications.E002"}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"COUNTERSIGN_NOTIFY_WEBHOOKS": "http://hooks.example/"}, "must be https"),
        ({"COUNTERSIGN_NOTIFY_WEBHOOKS": "https://hooks.example/"}, "needs 32 characters"),
        ({"COUNTERSIGN_NOTIFY_LANGUAGE": "de"}, "must be en or fr"),
        ({"COUNTERSIGN_NOTIFY_GIVE_UP_HOURS": "0"}, "greater than zero"),
    ],
)
def test_unsafe_settings_stop_the_start(
    start_settings: Callable[..., object], variables: dict[str, str], message: str
) -> None:
    started = start_settings(**variables)
    assert message in getattr(started, "stderr", "")


def test_a_person_sends_five_tests_an_hour(mailbox: MailServer, preparer: User, approver: User) -> None:
    for _ in range(5):
        preferences.send_test_message(preparer)
    with pytest.raises(preferences.TestLimitError):
        preferences.send_test_message(preparer)
    preferences.send_test_message(approver)
    Message.objects.update(created_at=timezone.now() - timedelta(hours=2))
    preferences.send_test_message(preparer)
