"""The messages of schedules: a link that needs sign-in, to whoever may still read the report."""

import smtplib
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.core import mail
from django.core.checks import run_checks
from django.core.mail import EmailMessage
from django.core.mail.backends.locmem import EmailBackend as LocmemBackend
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.reports.exports import runner, services
from backoffice.reports.models import ExportJob, ExportState
from backoffice.reports.schedules import messages
from tests.reports.schedule_requests import ran, stored_schedule

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("public_address")]
WARNING = "reports.W001"


def test_the_message_has_a_link_that_needs_sign_in_and_no_figures(auditor: User, client: Client) -> None:
    job = ran(stored_schedule(auditor))

    assert messages.send_due_messages() == 1
    assert messages.send_due_messages() == 0

    (message,) = mail.outbox
    assert message.to == [auditor.email]
    assert f"https://office.example{job.get_absolute_url()}" in message.body
    assert "Every morning" in message.subject
    assert str(job.rows) not in message.body.replace(str(job.pk), "").replace("seven", "")
    assert job.sha256 not in message.body
    assert message.attachments == []
    assert "sign-in" in client.get(job.get_absolute_url())["Location"]


def test_a_failed_message_is_retried(auditor: User, settings: Settings) -> None:
    job = ran(stored_schedule(auditor))
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # where nobody listens

    assert messages.send_due_messages() == 0

    kept_at = ExportJob.objects.get(pk=job.pk).mail_due_at
    assert kept_at is not None
    assert kept_at > clock.now() + messages.FIRST_RETRY - timedelta(minutes=1)
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    ExportJob.objects.filter(pk=job.pk).update(mail_due_at=clock.now())
    assert messages.send_due_messages() == 1


def test_a_failed_message_is_abandoned_after_seven_days(
    auditor: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    job = ran(stored_schedule(auditor, filters={"actor": ["999999"]}))
    assert (job.state, job.ended_at is not None) == (ExportState.FAILED, True)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # where nobody listens

    for days, is_kept in ((6, True), (8, False), (9, False)):
        with clock.use_clock(partial(later_by, timedelta(days=days))):
            assert messages.send_due_messages() == 0
        assert (ExportJob.objects.get(pk=job.pk).mail_due_at is not None) is is_kept

    assert caplog.text.count("could not be sent and is retried") == 1
    assert caplog.text.count("is dropped") == 1


@pytest.mark.parametrize(("ended_ago", "waits"), [(1, 5), (20, 20), (600, 60)])
def test_the_longer_a_message_fails_the_longer_the_next_try_waits(
    auditor: User, settings: Settings, ended_ago: int, waits: int
) -> None:
    """A server that refuses a recipient for good is not asked two thousand times in seven days."""
    job = ran(stored_schedule(auditor))
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # where nobody listens
    ExportJob.objects.filter(pk=job.pk).update(ended_at=clock.now() - timedelta(minutes=ended_ago))
    messages.send_due_messages()
    retried_at = ExportJob.objects.get(pk=job.pk).mail_due_at
    assert retried_at is not None
    assert timedelta() <= clock.now() + timedelta(minutes=waits) - retried_at < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("filters", "minutes_late", "is_named"),
    [
        ({"group": ["export"]}, 20, True),
        ({"group": ["export"]}, 10, False),
        ({"actor": ["999999"]}, 20, True),  # fails, and a mail tells the owner
    ],
)
def test_pages_name_whom_no_message_reached(
    auditor: User,
    administrator: User,
    client: Client,
    sign_in: Callable[[Client, User], Client],
    filters: dict[str, list[str]],
    minutes_late: int,
    is_named: bool,
) -> None:
    job = ran(stored_schedule(auditor, administrator, filters=filters))
    missed = administrator if job.state == ExportState.DONE else auditor
    ExportJob.objects.filter(pk=job.pk).update(ended_at=clock.now() - timedelta(minutes=minutes_late))
    sign_in(client, auditor)

    def shown() -> tuple[bool, bool]:
        schedules = client.get(reverse("reports:schedules")).content.decode()
        system = client.get(reverse("operations:system")).content.decode()
        return (
            f"The email could not be delivered to {missed}." in schedules,
            "1 email of a scheduled report could not be delivered and is retried." in system,
        )

    assert shown() == (is_named, is_named)
    assert messages.send_due_messages() == 1
    assert shown() == (False, False)


class FailsFirst(LocmemBackend):
    """Fails to send the first mail."""

    failure: Exception
    tries = 0

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        FailsFirst.tries += 1
        if FailsFirst.tries == 1:
            raise FailsFirst.failure
        return super().send_messages(messages)


@pytest.fixture
def fails_first(auditor: User, settings: Settings, public_address: None) -> None:
    """Two messages are due, and the first cannot be sent."""
    job = ran(stored_schedule(auditor))
    job.pk, job.due_at = uuid.uuid4(), clock.now()
    job.save(force_insert=True)
    settings.EMAIL_BACKEND = f"{__name__}.FailsFirst"
    FailsFirst.tries = 0


@pytest.mark.usefixtures("fails_first")
@pytest.mark.parametrize("failure", [TimeoutError("timed out"), smtplib.SMTPServerDisconnected("gone")])
def test_a_mail_server_that_is_away_is_waited_for_once_in_a_round(failure: Exception) -> None:
    """Each further message would wait as long, and the job would count as late."""
    FailsFirst.failure = failure
    assert (messages.send_due_messages(), FailsFirst.tries) == (0, 1)
    assert messages.send_due_messages() == 1
    assert ExportJob.objects.filter(mail_due_at__gt=clock.now()).count() == 1  # is tried again


@pytest.mark.usefixtures("fails_first")
def test_a_refused_recipient_delays_no_other_and_is_not_named_in_the_log(
    auditor: User, caplog: pytest.LogCaptureFixture
) -> None:
    FailsFirst.failure = smtplib.SMTPRecipientsRefused({auditor.email: (550, b"no such user")})
    assert messages.send_due_messages() == 1
    assert "is retried: the server refuses the recipient (550)" in caplog.text
    assert auditor.email not in caplog.text


def later_by(length: timedelta) -> datetime:
    return timezone.now() + length


def test_a_schedule_name_with_a_line_break_makes_one_subject_line(auditor: User) -> None:
    ran(stored_schedule(auditor, name="Every morning\nBcc: somebody@elsewhere.example"))

    assert messages.send_due_messages() == 1
    assert mail.outbox[0].subject == "Countersign: Every morning Bcc: somebody@elsewhere.example"


def test_without_a_public_url_no_message_is_sent_and_the_schedule_reports_it(
    auditor: User, settings: Settings, client: Client, sign_in: Callable[[Client, User], Client]
) -> None:
    job = ran(stored_schedule(auditor))
    settings.PUBLIC_URL = ""

    assert messages.send_due_messages() == 0
    assert mail.outbox == []
    page = sign_in(client, auditor).get(reverse("reports:schedules")).content.decode()
    assert "Ask the operator to set COUNTERSIGN_PUBLIC_URL" in page

    settings.PUBLIC_URL = "https://office.example"
    assert messages.send_due_messages() == 1
    assert f"https://office.example{job.get_absolute_url()}" in mail.outbox[0].body
    assert "COUNTERSIGN_PUBLIC_URL" not in client.get(reverse("reports:schedules")).content.decode()


def test_a_deployment_without_a_public_url_is_warned_of(settings: Settings) -> None:
    def warned() -> list[str]:
        return [str(found.msg) for found in run_checks(include_deployment_checks=True) if found.id == WARNING]

    assert warned() == []
    settings.PUBLIC_URL = ""
    [words] = warned()
    assert "COUNTERSIGN_PUBLIC_URL is not set" in words


def test_the_owner_is_informed_that_a_file_could_not_be_made_and_why(
    auditor: User, administrator: User, client: Client, sign_in: Callable[[Client, User], Client]
) -> None:
    schedule = stored_schedule(administrator, auditor, filters={"actor": ["999999"]})

    assert ran(schedule).state == ExportState.FAILED
    assert messages.send_due_messages() == 1
    assert messages.send_due_messages() == 0

    (message,) = mail.outbox
    assert message.to == [administrator.email]
    assert "Every morning: no file was created for Femi Ade. A filter is no longer valid." in message.body
    assert f"https://office.example{reverse('reports:schedules')}" in message.body
    page = sign_in(client, administrator).get(reverse("reports:schedules")).content.decode()
    assert "no file was created for Femi Ade. A filter is no longer valid." in page


def test_a_failed_requested_export_sends_no_message(auditor: User) -> None:
    asked = {"report": "audit-log", "time_zone": "UTC", "filters": {"actor": ["999999"]}}
    services.request_export(auditor, asked)
    runner.run_next_export()

    assert ExportJob.objects.get().state == ExportState.FAILED
    assert messages.send_due_messages() == 0


def test_no_message_is_sent_to_a_recipient_without_the_permission(auditor: User) -> None:
    ran(stored_schedule(auditor))
    auditor.groups.clear()

    assert messages.send_due_messages() == 0
    assert mail.outbox == []


def test_a_requested_export_sends_no_message(auditor: User) -> None:
    services.request_export(auditor, {"report": "audit-log", "time_zone": "UTC"})
    runner.run_next_export()

    assert ExportJob.objects.get().state == ExportState.DONE
    assert messages.send_due_messages() == 0
