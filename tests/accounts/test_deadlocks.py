"""Two changes at the same time wait for each other in one order, so neither is given up as a deadlock.

One side of each pair runs in a thread, up to where it waits for a lock of the other side. SQLite has one lock, taken
before anything else: there the same steps simply follow each other.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts import break_glass, staff
from backoffice.accounts.break_glass import ShellCommand
from backoffice.accounts.models import AuthenticatorDevice, SetupLink, StaffSession, User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.operations.kinds.staff_change import StaffChange
from tests import factories
from tests.accounts import steps
from tests.factories import PASSWORD
from tests.operations.kinds.staff import changes

pytestmark = pytest.mark.django_db(transaction=True)
SECONDS = 120
BLOCKED = """
    SELECT count(DISTINCT waiting.pid) FROM pg_locks waiting JOIN pg_locks here USING (pid)
    WHERE NOT waiting.granted AND here.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
NEW = "another horse battery staple"


def beside(change: Callable[[], Any]) -> Callable[[], Any]:
    """The change, with the connection of its thread closed afterwards."""

    def changed() -> Any:
        with closing(connection):
            return change()

    return changed


def wait_until_blocked(*changes: Future[Any]) -> None:
    """Until each of the other threads waits for a lock, or is done without."""
    deadline = time.monotonic() + SECONDS
    while connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(BLOCKED)
            [blocked] = cursor.fetchone()
        if blocked + sum(change.done() for change in changes) >= len(changes):
            return
        assert time.monotonic() < deadline, "the other side never came to the lock"


def set_up_authenticator(client: Client, user: User) -> None:
    """The second half of an enrolment: the first right code of the new authenticator."""
    client.get(reverse("accounts:enrol"))
    device = steps.authenticator(user, confirmed=False)
    client.post(reverse("accounts:enrol"), {"code": steps.code_of(device), "old_password": PASSWORD})


@pytest.mark.parametrize(
    "change",
    [
        lambda _client, user: staff.set_roles(user.pk, roles=[Role.AUDITOR], actor=None),
        lambda _client, user: staff.deactivate_staff(user.pk, actor=None),
        lambda _client, user: staff.reset_second_factor(user.pk, actor=None),
        lambda client, _user: client.post(
            reverse("accounts:password"), {"old_password": PASSWORD, "new_password": NEW, "repeated": NEW}
        ),
        set_up_authenticator,
    ],
    ids=["roles", "deactivation", "second factor", "password", "authenticator"],
)
def test_changing_a_user_does_not_deadlock_with_auditing_their_action(
    signed_in: Client, preparer: User, change: Callable[[Client, User], Any]
) -> None:
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            record(Action.OPERATION_PREPARED, actor=preparer)
            changed = thread.submit(beside(lambda: change(signed_in, preparer)))
            wait_until_blocked(changed)
        changed.result(timeout=SECONDS)
    assert Entry.objects.count() > 1


@pytest.mark.parametrize("by", ["a recovery code", "signing out"])
def test_saving_a_session_does_not_deadlock_with_ending_the_others(
    client: Client, preparer: User, by: str
) -> None:
    code = steps.recovery_codes(preparer)[0]
    steps.give_password(client, preparer)
    before = Entry.objects.count()
    change: Callable[[], Any] = {
        "a recovery code": lambda: steps.give_code(client, code),
        "signing out": lambda: client.post(reverse("accounts:sign_out")),
    }[by]
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            StaffSession.objects.filter(user=preparer).update(address="10.0.0.9")
            changed = thread.submit(beside(change))
            wait_until_blocked(changed)
            record(Action.SESSIONS_ENDED, actor=preparer)
        assert changed.result(timeout=SECONDS).status_code == 302
    assert Entry.objects.count() >= before + 2


def test_a_new_link_does_not_deadlock_with_showing_the_one_before(
    administrator: User, second_administrator: User
) -> None:
    invited = changes.agreed(changes.invitation(Role.APPROVER), administrator, second_administrator)
    ada = User.objects.get(email="ada@countersign.example")
    reset = changes.proposed(changes.of_person(StaffChange.SECOND_FACTOR, ada), administrator)
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            SetupLink.objects.filter(operation=invited.pk).update(link_shown_at=timezone.now())
            approved = thread.submit(beside(lambda: factories.approve(reset, second_administrator)))
            wait_until_blocked(approved)
            record(Action.SETUP_LINK_SHOWN, actor=administrator, target=ada)
        approved.result(timeout=SECONDS)
    assert SetupLink.objects.get().operation == reset.pk


def test_two_tabs_starting_enrolment_do_not_deadlock(client: Client, newcomer: User) -> None:
    steps.open_link(client, newcomer)
    tabs = [Client(), Client()]
    for tab in tabs:
        tab.cookies = client.cookies
    opened = [lambda tab=tab: tab.get(reverse("accounts:enrol")) for tab in tabs]
    with ThreadPoolExecutor(2) as threads:
        with transaction.atomic():
            User.objects.filter(pk=newcomer.pk).update(full_name="Nia Newer")
            pages = [threads.submit(beside(page)) for page in opened]
            wait_until_blocked(*pages)
        assert [page.result(timeout=SECONDS).status_code for page in pages] == [200, 200]
    assert AuthenticatorDevice.objects.filter(user=newcomer).count() == 1


def test_two_administrators_deactivated_at_the_shell_at_the_same_time_leave_two() -> None:
    first, second, *_ = [
        factories.person(f"{name} Musa", Role.ADMINISTRATOR) for name in ("Ada", "Bola", "Chi")
    ]
    command = ShellCommand("left the company")
    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            break_glass.deactivate_staff(first.pk, command=command)
            other = pool.submit(beside(lambda: break_glass.deactivate_staff(second.pk, command=command)))
            wait_until_blocked(other)
        with pytest.raises(break_glass.ShellRefusedError):
            other.result(SECONDS)
    assert User.objects.filter(is_active=True).count() == 2
