"""What one administrator does to another person's account, and the end of a group, reach everybody concerned."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.governance import deactivation
from backoffice.notifications.recording import audit_feed
from backoffice.operations.kinds.staff_change import StaffChange
from backoffice.operations.lifecycle import pause
from tests.notifications.steps import notices_of
from tests.operations.kinds.staff import changes
from tests.policies.versions import group

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mailbox")]


@pytest.mark.parametrize(
    ("action", "own", "others"),
    [
        (deactivation.deactivate_person, "deactivated", "team_deactivated"),
        (deactivation.end_sessions, "session_ended", "team_sessions_ended"),
    ],
)
def test_the_person_and_all_administrators_hear_of_it(
    administrator: User,
    second_administrator: User,
    approver: User,
    preparer: User,
    action: Callable[..., User],
    own: str,
    others: str,
) -> None:
    action(approver.pk, actor=administrator, second_factor_at=timezone.now(), reason="Lost laptop")
    audit_feed.record_events_due()
    assert notices_of(approver.pk) == [own]
    assert [notices_of(one.pk) for one in (administrator, second_administrator)] == [[others]] * 2
    assert notices_of(preparer.pk) == []


def test_the_members_of_a_retired_group_hear_of_it(
    administrator: User, second_administrator: User, approver: User, preparer: User
) -> None:
    treasury = group("Treasury", approver)
    payload = changes.of_group(StaffChange.RETIRE_GROUP, "", treasury)
    changes.agreed(payload, administrator, second_administrator)
    audit_feed.record_events_due()
    assert notices_of(approver.pk) == ["groups_changed"]
    assert "team_group_changed" in notices_of(administrator.pk)
    assert notices_of(preparer.pk) == []


def test_an_account_that_is_not_set_up_hears_of_itself_alone(
    administrator: User, second_administrator: User, approver: User
) -> None:
    payload = changes.invitation(Role.ADMINISTRATOR, Role.APPROVER)
    changes.agreed(payload, administrator, second_administrator)
    invited = User.objects.get(email=payload.email)
    pause.pause_payments(actor=approver, reason="Something is wrong")
    changes.proposed(changes.of_group(StaffChange.CREATE_GROUP, "Treasury"), administrator)
    deactivation.end_sessions(
        approver.pk, actor=administrator, second_factor_at=timezone.now(), reason="Lost laptop"
    )
    audit_feed.record_events_due()
    assert notices_of(invited.pk)[0] == "account_created"
    assert not {"paused", "waits", "team_sessions_ended"} & set(notices_of(invited.pk))
    assert {"paused", "waits", "team_sessions_ended"} <= set(notices_of(second_administrator.pk))
