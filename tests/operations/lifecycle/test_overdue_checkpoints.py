"""A destination that gets no checkpoint of the audit log for an hour: one incident for each outage, for everybody."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.checkpoints import deliver_checkpoints_due
from backoffice.audit.models import CheckpointDestination, Entry
from backoffice.core import clock
from backoffice.notifications.events import EVENTS, Audience
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.monitoring import Incident, is_paused
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.monitoring.inspection import inspect
from tests.audit.conftest import KEYS
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]


class Volume:
    """The volume of the file of checkpoints, and the minutes that have passed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.minutes = folder, 0.0
        self.began = timezone.now()

    def unmount(self) -> None:
        self.folder.rename(self.folder.with_name("away"))

    def mount(self) -> None:
        self.folder.with_name("away").rename(self.folder)

    def passes(self, minutes: int, *, every: int = 2) -> None:
        """The sweeper delivers and the checks run, every two minutes unless said otherwise. Gaps of five minutes would
        count as a stop of the processes.
        """
        for _ in range(0, minutes, every):
            self.minutes += every
            deliver_checkpoints_due()
            inspect(full=False)

    def record_something(self) -> None:
        with transaction.atomic():
            audit.record(Action.OPERATION_PREPARED, actor=None, target="W-1")


@pytest.fixture
def volume(tmp_path: Path, settings: Settings) -> Iterator[Volume]:
    """Checkpoints were delivered to it."""
    made = Volume(tmp_path / "checkpoints")
    made.folder.mkdir()
    settings.AUDIT_CHECKPOINT_KEYS = KEYS
    settings.AUDIT_CHECKPOINT_DESTINATIONS = [f"file://{made.folder}/lines"]
    with clock.use_clock(lambda: made.began + timedelta(minutes=made.minutes)):
        made.record_something()
        made.passes(2)
        yield made


def outage(volume: Volume) -> None:
    volume.unmount()
    volume.record_something()
    volume.passes(64, every=4)


def test_an_hour_without_a_checkpoint_is_one_incident(volume: Volume) -> None:
    volume.unmount()
    volume.record_something()
    volume.passes(58)
    assert not Incident.objects.exists()
    volume.passes(120, every=4)
    incident = Incident.objects.get()
    destination = CheckpointDestination.objects.get()
    assert (incident.kind, incident.subject) == (IncidentKind.CHECKPOINT_OVERDUE, destination)
    assert incident.evidence["undelivered"] == destination.position + 1
    [(name, text)] = incident.facts
    assert (name, text.partition(":")[0]) == ("problem", "It cannot be read back")
    entry = Entry.objects.get(action=Action.INCIDENT_RAISED)
    assert (entry.target_id, entry.detail["incident"]) == (destination.address, "checkpoint_overdue")
    assert [event.audience for event in EVENTS[Action.INCIDENT_RAISED]] == [Audience.RESPONDERS]
    assert not is_paused()


def test_the_same_outage_is_not_raised_again_and_the_next_one_is(volume: Volume, approver: User) -> None:
    outage(volume)
    first = Incident.objects.get()
    incidents.acknowledge_incident(first.pk, actor=approver, note="The volume is being replaced")
    volume.passes(64, every=4)
    assert Incident.objects.get().is_delivered_again is False
    volume.mount()
    volume.passes(2)
    assert Incident.objects.get().is_delivered_again
    outage(volume)
    further = Incident.objects.get(further_to=first)
    assert further.is_open
    assert not further.is_delivered_again


def test_an_incident_stays_open_until_it_is_acknowledged(volume: Volume) -> None:
    outage(volume)
    volume.mount()
    volume.passes(64, every=4)
    assert Incident.objects.get().is_open


def test_nothing_is_raised_because_everything_was_stopped(volume: Volume) -> None:
    """What was recorded just before is delivered when the sweeper runs again."""
    volume.record_something()
    volume.minutes += 180
    inspect(full=False)
    volume.passes(4)
    assert not Incident.objects.exists()


def test_everybody_sees_it_and_who_may_acknowledges_it(
    volume: Volume, preparer: User, approver: User, client: Client, sign_in: SignIn
) -> None:
    outage(volume)
    incident = Incident.objects.get()
    as_preparer = sign_in(Client(), preparer)
    assert "1 open incident" in text_of(as_preparer.get(reverse("operations:overview")))
    as_approver = sign_in(client, approver)
    assert incident.sentence in text_of(as_approver.get(reverse("operations:incidents")))
    page = text_of(as_approver.get(incident.get_absolute_url()))
    assert str(incident.destination) in page
    assert "Not delivered since" in page
    assert "Payments continue" in page
    assert as_approver.post(incident.get_absolute_url(), {"note": "Mounted again"}).status_code == 302
    volume.mount()
    volume.passes(2)
    assert "Delivered again" in text_of(as_approver.get(incident.get_absolute_url()))
    assert "open incident" not in text_of(as_preparer.get(reverse("operations:overview")))
