"""The Team pages: people, groups, one person, what one administrator does at once, the first steps, access reviews."""

import gzip
import io
import re
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice import settings as product_settings
from backoffice.accounts import groups
from backoffice.accounts.access_report import REVIEW_INTERVAL, RightKind, access_rows, report_digest
from backoffice.accounts.models import AccessReview, AuthenticatorDevice, SetupLink, StaffSession, User
from backoffice.accounts.restrictions import AccountChange, BreakGlassChange, RightsGrant
from backoffice.accounts.roles import Role, users_with_permission
from backoffice.accounts.staff import create_staff
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.core.web.formatting import local_day
from backoffice.governance import deactivation
from backoffice.governance.bootstrap import (
    NotBootstrappingError,
    bootstrap_state,
    invite_second_administrator,
)
from backoffice.operations import errors
from backoffice.operations.kinds.access_review import AccessReviewForm, AccessReviewPayload
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.delegation import end_delegation
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.operations.workflow import prepare
from backoffice.policies.delegations import Delegation
from backoffice.policies.models import PolicyVersion
from backoffice.reports.rendering.cells import time_text
from tests import factories
from tests.accounts.steps import age_second_factor, set_up_account
from tests.operations.delegations import leave
from tests.operations.kinds.staff import changes
from tests.policies.versions import group, put_in_effect
from tests.recipients import registered

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
Queries = Callable[[int], Any]


@pytest.fixture
def as_administrator(client: Client, administrator: User, sign_in: SignIn) -> Client:
    return sign_in(client, administrator)


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def many_people() -> None:
    treasury = groups.create_group("Treasury")
    people = User.objects.bulk_create(
        User(email=f"person{number}@countersign.example", full_name=f"Person {number:03} Lastname")
        for number in range(500)
    )
    approver, auditor = Group.objects.get(name=Role.APPROVER), Group.objects.get(name=Role.AUDITOR)
    for person in people:
        person.groups.set([approver, auditor])
        groups.set_groups(person, [treasury.pk], operation=uuid.uuid4())


def test_the_list_keeps_its_budget_with_500_people(
    as_administrator: Client, django_assert_max_num_queries: Queries
) -> None:
    many_people()
    for address in (
        reverse("governance:team"),
        reverse("governance:groups"),
        reverse("governance:access_review"),
        reverse("governance:person", args=[User.objects.get(email="person7@countersign.example").pk]),
    ):
        with django_assert_max_num_queries(6):
            answer = as_administrator.get(address)
        assert answer.status_code == 200
        assert len(gzip.compress(answer.content)) <= 14_000


def test_the_list_shows_rights_sign_in_sessions_and_approvals(
    as_administrator: Client, approver: User, preparer: User, outsider: User
) -> None:
    groups.set_groups(approver, [groups.create_group("Treasury").pk], operation=uuid.uuid4())
    factories.approved(preparer, approver)
    User.objects.filter(pk=outsider.pk).update(is_active=False)
    AuthenticatorDevice.objects.filter(user=outsider).delete()
    html = as_administrator.get(reverse("governance:team")).content.decode()
    assert text_of_row(html, "Amara Okafor")[-3:] == ["Approver Group: Treasury", "Never", "1"]
    assert "Deactivated" in text_of_row(html, "Ola Stranger")[0]
    assert text_of_row(html, "Ola Stranger")[-2] == "Never No second factor"
    assert "<small>1 open session</small>" in html
    found = text_of(as_administrator.get(reverse("governance:team") + "?q=amara"))
    assert "Amara Okafor" in found
    assert "Tunde Bello" not in found


def text_of_row(html: str, name: str) -> list[str]:
    row = next(part for part in html.split("<tr>") if name in part)
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]


def test_a_page_leads_to_the_next_people(as_administrator: Client) -> None:
    many_people()
    html = as_administrator.get(reverse("governance:team")).content.decode()
    following = re.search(r'href="(\?[^"]*cursor=[^"]*)" rel="next"', html)
    assert following is not None
    assert "Person 060" in text_of(as_administrator.get(reverse("governance:team") + following[1]))


def test_the_page_of_a_person_says_since_when_and_by_whose_approval(
    as_administrator: Client, administrator: User, second_administrator: User, preparer: User, approver: User
) -> None:
    changes.agreed(changes.rights(preparer, Role.AUDITOR), administrator, second_administrator)
    page = text_of(as_administrator.get(reverse("governance:person", args=[preparer.pk])))
    assert "Role: Auditor" in page
    assert "Zainab Musa + Kemi Balogun" in page
    assert "New rights: cannot approve, send or resolve before" in page


def test_nobody_is_offered_a_change_of_their_own_account(
    as_administrator: Client, administrator: User, approver: User
) -> None:
    own = as_administrator.get(reverse("governance:person", args=[administrator.pk])).content.decode()
    other = as_administrator.get(reverse("governance:person", args=[approver.pk])).content.decode()
    assert "change=rights" not in own
    assert "change=rights" in other
    assert "Deactivate…" in other


def deactivated(person: User, actor: User, **more: Any) -> User:
    arguments = {"second_factor_at": timezone.now(), "reason": "Left", **more}
    return deactivation.deactivate_person(person.pk, actor=actor, **arguments)


def test_one_administrator_deactivates_at_once_and_ends_the_sessions(
    administrator: User, approver: User, sign_in: SignIn, as_administrator: Client
) -> None:
    signed_in = sign_in(Client(), approver)
    as_administrator.post(reverse("governance:deactivate", args=[approver.pk]), {"reason": "Left"})
    assert not User.objects.get(pk=approver.pk).is_active
    assert not StaffSession.objects.filter(user=approver).exists()
    assert signed_in.get("/").status_code == 302
    entry = Entry.objects.get(action=Action.STAFF_DEACTIVATED)
    assert (entry.actor_id, entry.detail["reason"]) == (administrator.pk, "Left")


def test_what_a_deactivated_approver_approved_is_not_sent(
    administrator: User, preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    deactivated(approver, administrator)
    assert approver not in users_with_permission(APPROVE)
    assert Operation.objects.get(pk=operation.pk).status == Status.APPROVED


def test_the_page_says_before_what_of_a_deactivated_preparer_cannot_be_sent(
    as_administrator: Client, preparer: User, approver: User
) -> None:
    address = reverse("governance:deactivate", args=[preparer.pk])
    assert "that this person prepared" not in text_of(as_administrator.get(address))
    factories.approved(preparer, approver)
    assert "1 operation that this person prepared is not sent yet, and then can be neither" in text_of(
        as_administrator.get(address)
    )


def test_nobody_deactivates_themselves(administrator: User, second_administrator: User) -> None:
    factories.person("Third Person", Role.ADMINISTRATOR)
    with pytest.raises(errors.OperationError) as refused:
        deactivated(administrator, administrator)
    assert refused.value.refusal["code"] == Refusal.OWN_DEACTIVATION


def test_nobody_is_deactivated_twice(administrator: User, second_administrator: User, approver: User) -> None:
    deactivated(approver, administrator)
    with pytest.raises(errors.OperationError) as refused:
        deactivated(approver, second_administrator)
    assert refused.value.refusal["code"] == Refusal.ALREADY_DEACTIVATED
    assert Entry.objects.filter(action=Action.STAFF_DEACTIVATED).count() == 1


def test_two_active_administrators_remain(administrator: User, second_administrator: User) -> None:
    with pytest.raises(errors.OperationError) as refused:
        deactivated(second_administrator, administrator)
    assert refused.value.refusal["code"] == Refusal.TOO_FEW_ADMINISTRATORS
    factories.person("Third Person", Role.ADMINISTRATOR)
    assert not deactivated(second_administrator, administrator).is_active


def without_authenticator(name: str) -> User:
    """An administrator who was invited and has not signed in yet."""
    person = factories.person(name, Role.ADMINISTRATOR)
    person.authenticators.all().delete()
    return person


def test_administrators_without_an_authenticator_do_not_count_among_those_who_remain(
    administrator: User, second_administrator: User
) -> None:
    invited = without_authenticator("Third Person")
    with pytest.raises(errors.OperationError) as refused:
        deactivated(second_administrator, administrator)
    assert refused.value.refusal["code"] == Refusal.TOO_FEW_ADMINISTRATORS
    assert not deactivated(invited, administrator).is_active


def test_an_administrator_without_whom_nothing_could_be_approved_remains(
    administrator: User, second_administrator: User
) -> None:
    third, _invited = factories.person("Third Person", Role.ADMINISTRATOR), without_authenticator("Fourth A")
    put_in_effect({"when": {"kinds": ["staff_change"]}, "levels": [{"needed": 2}]})
    with pytest.raises(errors.PolicyUnsatisfiableError):
        deactivated(third, administrator)
    assert User.objects.get(pk=third.pk).is_active
    factories.person("Bisi Ade", Role.ADMINISTRATOR)
    assert not deactivated(third, administrator).is_active


def test_whoever_only_handles_money_is_deactivated_whatever_the_policy_needs(
    administrator: User, second_administrator: User, preparer: User, approver: User, second_approver: User
) -> None:
    put_in_effect({"when": {"kinds": ["withdrawal"]}, "levels": [{"needed": 2}]})
    assert not deactivated(approver, administrator).is_active


def test_an_administrator_is_deactivated_while_the_policy_is_altered(
    administrator: User, second_administrator: User
) -> None:
    """It was altered by an intruder, perhaps with this account."""
    third = factories.person("Third Person", Role.ADMINISTRATOR)
    put_in_effect({"when": {"kinds": ["staff_change"]}, "levels": [{"needed": 2}]})
    PolicyVersion.objects.update(seal=None)
    assert not deactivated(third, administrator).is_active


@pytest.mark.parametrize("action", [deactivation.deactivate_person, deactivation.end_sessions])
def test_both_need_the_permission_and_a_fresh_second_factor(
    administrator: User, approver: User, outsider: User, action: Callable[..., User]
) -> None:
    with pytest.raises(errors.PermissionMissingError):
        action(outsider.pk, actor=approver, second_factor_at=timezone.now(), reason="No")
    stale = timezone.now() - timedelta(minutes=6)
    with pytest.raises(errors.SecondFactorStaleError):
        action(outsider.pk, actor=administrator, second_factor_at=stale, reason="No")
    factories.break_glass(administrator)
    with pytest.raises(errors.AccountRestrictedError):
        action(outsider.pk, actor=administrator, second_factor_at=timezone.now(), reason="No")
    assert User.objects.get(pk=outsider.pk).is_active


def test_ending_sessions_leaves_the_account(
    as_administrator: Client, approver: User, sign_in: SignIn
) -> None:
    sign_in(Client(), approver)
    as_administrator.post(reverse("governance:end_sessions", args=[approver.pk]), {"reason": "Lost laptop"})
    assert not StaffSession.objects.filter(user=approver).exists()
    assert User.objects.get(pk=approver.pk).is_active
    assert Entry.objects.filter(action=Action.STAFF_SESSIONS_ENDED).exists()


def test_without_a_reason_nothing_is_changed(as_administrator: Client, approver: User) -> None:
    answer = as_administrator.post(reverse("governance:deactivate", args=[approver.pk]))
    assert answer.status_code == 422
    assert User.objects.get(pk=approver.pk).is_active


def test_link_and_code_are_shown_once_to_the_two_who_agreed(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    operation = changes.agreed(changes.invitation(Role.APPROVER), administrator, second_administrator)
    address = reverse("governance:handover", args=[operation.pk])
    for person, expected in ((administrator, "/account/set-up/"), (second_administrator, "-")):
        client = sign_in(Client(), person)
        assert (
            reverse("governance:handover", args=[operation.pk])
            in client.get(operation.get_absolute_url()).content.decode()
        )
        first = client.post(address)
        shown = re.search(r'data-copy="([^"]+)"', first.content.decode())
        assert shown is not None
        assert expected in shown[1]
        again = client.post(address).content.decode()
        assert "data-copy" not in again
        assert "nothing to show" in again


def test_the_start_code_is_one_button_away_from_the_approval(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    operation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    client = sign_in(Client(), second_administrator)
    page = reverse("operations:detail", args=[operation.pk])
    address = reverse("governance:handover", args=[operation.pk])
    assert address not in client.get(page).content.decode()
    approved = client.post(
        reverse("operations:approve", args=[operation.pk]), {"digest": operation.digest}, follow=True
    ).content.decode()
    assert f'<form method="post" action="{address}">' in approved
    assert "Show start code" in approved
    assert f'<form method="post" action="{address}">' not in (
        sign_in(Client(), administrator).get(page).content.decode()
    )
    groups_of_code = re.search(r"<code[^>]*>(.*?)</code>", client.post(address).content.decode())
    assert groups_of_code is not None
    assert re.fullmatch(r"(<span>[A-Z2-9]{4}</span><wbr>){3}", groups_of_code[1])


def test_without_a_fresh_second_factor_the_button_leads_to_a_page_that_asks_for_it(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    operation = changes.agreed(changes.invitation(Role.APPROVER), administrator, second_administrator)
    client = sign_in(Client(), second_administrator)
    age_second_factor(client, minutes=6)
    address = reverse("governance:handover", args=[operation.pk])
    page = client.get(operation.get_absolute_url()).content.decode()
    assert f'<form method="post" action="{address}">' not in page
    assert f'href="{address}">Show start code…' in page
    refused = client.post(address)
    assert refused.status_code == 422
    assert "data-copy" not in refused.content.decode()


def test_a_link_is_shown_although_several_people_approved(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    third = factories.person("Efe Obi", Role.ADMINISTRATOR)
    put_in_effect({"when": {"kinds": ["staff_change"]}, "levels": [{"needed": 2}]})
    operation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    for person in (second_administrator, third):
        factories.approve(operation, person)
    shown = sign_in(Client(), administrator).post(reverse("governance:handover", args=[operation.pk]))
    assert "/account/set-up/" in shown.content.decode()


@pytest.fixture
def first_administrator(administrator: User) -> User:
    User.objects.filter(pk=administrator.pk).update(last_login=timezone.now())
    return administrator


def test_the_first_administrator_invites_the_second_without_a_shell(
    first_administrator: User, sign_in: SignIn, settings: Any
) -> None:
    settings.ADMINISTRATORS_TO_SEND = 2
    client = sign_in(Client(), first_administrator)
    assert "Invite the second administrator" in text_of(client.get(reverse("operations:overview")))
    values = {"full_name": "Ibrahim Sani", "email": "Ibrahim@countersign.example"}
    shown = client.post(reverse("governance:bootstrap"), values).content.decode()
    link = re.search(r'data-copy="[^"]*(/account/set-up/[^"]+)"', shown)
    assert link is not None
    set_up_account(link[1])
    ibrahim = User.objects.get(email="ibrahim@countersign.example")
    assert client.get(reverse("governance:bootstrap")).status_code == 302
    with pytest.raises(NotBootstrappingError):
        invite_second_administrator("third@countersign.example", full_name="X", actor=first_administrator)
    payload = changes.invitation(Role.APPROVER)
    assert changes.agreed(payload, first_administrator, ibrahim).status == Status.SUCCEEDED


def steps_done(page: Any) -> list[bool]:
    """Of each of the first steps, whether it is marked as done; empty without the list."""
    steps = page.content.decode().partition('id="steps-title">')[2].partition("</ol>")[0]
    return [">Done<" in step for step in steps.split("<li")[1:]]


def test_the_team_page_lists_the_first_steps_until_each_is_done(
    as_administrator: Client,
    administrator: User,
    second_administrator: User,
    approver: User,
    preparer: User,
) -> None:
    """Roles of people who have never signed in do not count."""
    page = reverse("governance:team")
    assert steps_done(as_administrator.get(page)) == [True, False, True, False, False, True, False]
    alone = {"user": second_administrator, "change": AccountChange.INVITED_ALONE, "invited_by": administrator}
    BreakGlassChange.objects.create(at=timezone.now(), **alone)
    never_signed_in = AuthenticatorDevice.objects.filter(user__in=[approver, second_administrator])
    never_signed_in.update(confirmed=False)
    assert steps_done(as_administrator.get(page)) == [False] * 7
    never_signed_in.update(confirmed=True)
    treasury = groups.create_group("Treasury")
    put_in_effect({"when": {"kinds": ["withdrawal"]}, "levels": [{"needed": 1}]})
    assert steps_done(as_administrator.get(page)) == [True, False, True, True, False, False, False]
    assert "Treasury has no active member yet." in text_of(as_administrator.get(page))
    groups.set_groups(approver, [treasury.pk], operation=uuid.uuid4())
    assert steps_done(as_administrator.get(page)) == [True, True, True, True, False, False, False]
    assert steps_done(as_administrator.get(page, {"q": preparer.full_name})) == []
    third = factories.person("Third Person", Role.ADMINISTRATOR)
    BreakGlassChange.objects.update(acknowledged_by=third, acknowledged_at=timezone.now(), note="Met both")
    assert steps_done(as_administrator.get(page)) == [True, True, True, True, False, True, False]
    registered.agreed(registered.user(), preparer, approver)
    assert steps_done(as_administrator.get(page)) == [True] * 6 + [False]


def test_one_person_with_both_roles_is_not_enough_to_prepare_and_approve(
    as_administrator: Client, second_administrator: User
) -> None:
    def missing() -> str:
        return text_of(as_administrator.get(reverse("governance:team")))

    assert "Missing: an active preparer and an active approver." in missing()
    both = factories.person("Both Roles", Role.PREPARER, Role.APPROVER)
    assert "The only preparer is also the only approver." in missing()
    assert "not finished the set-up" not in missing()
    create_staff("new@countersign.example", full_name="New Person", roles=[])
    assert "1 person has not finished the set-up" in missing()
    factories.person("Second Preparer", Role.PREPARER)
    assert "Missing:" not in missing()
    both.groups.set([Group.objects.get(name=Role.PREPARER)])
    assert "Missing: an active approver." in missing()


def links_of_steps(page: Any) -> list[str]:
    """The texts of the links in the list of the first steps."""
    steps = page.content.decode().partition('id="steps-title">')[2].partition("</ol>")[0]
    return re.findall(r">([^<]+)</a>", steps)


def test_the_first_steps_name_the_second_administrator_who_was_invited(first_administrator: User) -> None:
    client = factories.sign_in(Client(), first_administrator)
    for page in ("/", reverse("governance:team")):
        assert "Invite the second administrator" in links_of_steps(client.get(page))
    second = invited_second(first_administrator)
    for page in ("/", reverse("governance:team")):
        shown = client.get(page)
        assert f"{second.full_name} has not finished the set-up." in text_of(shown)
        assert "Invite the second administrator" not in shown.content.decode()
        links = links_of_steps(shown)
        assert links[:2] == ["Create a new link", "Invite another administrator instead"]
        assert reverse("governance:renew_link", args=[second.pk]) in shown.content.decode()


def test_the_first_steps_do_not_ask_to_invite_again_who_is_invited(
    as_administrator: Client, administrator: User, second_administrator: User
) -> None:
    """They lead each administrator to the own links or start codes."""
    page, colleague = reverse("governance:team"), factories.sign_in(Client(), second_administrator)
    invitations = [
        changes.proposed(changes.invitation(Role.PREPARER, name="Ada Obi"), administrator),
        changes.proposed(changes.invitation(Role.APPROVER, name="Bo Li"), administrator),
    ]
    assert "2 invitations wait for approval" in links_of_steps(as_administrator.get(page))
    assert "Invite people" not in links_of_steps(as_administrator.get(page))
    for invitation in invitations:
        factories.approve(invitation, second_administrator)
    for client, passing_on in ((as_administrator, "Pass on 2 links…"), (colleague, "Show 2 start codes…")):
        shown = client.get(page)
        assert "2 people have not finished the set-up" in text_of(shown)
        assert "Missing:" not in text_of(shown)
        assert "Invite people" not in links_of_steps(shown)
        assert [one for one in links_of_steps(shown) if "2" in one] == [passing_on]


def test_the_first_steps_name_all_groups_without_an_active_member(
    as_administrator: Client, second_administrator: User, approver: User
) -> None:
    for name in ("Treasury", "Directors"):
        groups.create_group(name)
    group("Controllers", approver)
    team = as_administrator.get(reverse("governance:team"))
    assert "No active member yet: Directors, Treasury." in text_of(team)
    assert "View team" not in links_of_steps(team)
    assert "View team" in links_of_steps(as_administrator.get("/"))


def test_a_step_that_is_done_has_no_link(
    as_administrator: Client, second_administrator: User, approver: User, preparer: User
) -> None:
    def links() -> list[str]:
        page = as_administrator.get("/").content.decode().partition('id="steps-title">')[2]
        return re.findall(r">([^<]+)</a>", page.partition("</ol>")[0])

    assert "Create group" in links()
    group("Treasury", approver)
    assert links() == ["Approval policies", "Recipients", "Operations"]


def test_a_mistyped_address_is_corrected_by_another_invitation(first_administrator: User) -> None:
    wrong, _token = invite_second_administrator("wrong@example.com", full_name="I", actor=first_administrator)
    invite_second_administrator("right@example.com", full_name="I", actor=first_administrator)
    assert not User.objects.get(pk=wrong.pk).is_active
    assert SetupLink.objects.get().user.email == "right@example.com"


def invited_second(actor: User) -> User:
    """The second administrator, who has signed in."""
    second, _token = invite_second_administrator("i@example.com", full_name="Ibrahim Sani", actor=actor)
    User.objects.filter(pk=second.pk).update(last_login=timezone.now())
    return second


@pytest.mark.parametrize("role", [Role.APPROVER, Role.AUDITOR, Role.ADMINISTRATOR])
def test_an_invitation_by_one_alone_is_red_until_a_third_person_acknowledges_it(
    first_administrator: User, sign_in: SignIn, role: Role
) -> None:
    second = invited_second(first_administrator)
    change = BreakGlassChange.objects.get()
    address = reverse("operations:break_glass", args=[change.pk])
    assert (change.change, change.invited_by, change.os_user) == (
        AccountChange.INVITED_ALONE,
        first_administrator,
        "",
    )
    as_first = sign_in(Client(), first_administrator)
    for place in ("operations:overview", "operations:incidents"):
        assert "by one person alone" in text_of(as_first.get(reverse(place)))
    assert "You are one of the two administrators" in text_of(as_first.get(address))
    third = factories.person("Third Person", role)
    client = sign_in(Client(), third)
    assert "alone invited Ibrahim Sani" in text_of(client.get(address))
    assert client.post(address, {"note": "Met both"}).status_code == 302
    change.refresh_from_db()
    assert (change.acknowledged_by, change.is_open) == (third, False)
    assert "change by one person alone" not in text_of(as_first.get(reverse("operations:overview")))
    assert second != third


def test_two_administrators_made_at_the_shell_are_red_as_well(
    first_administrator: User, sign_in: SignIn
) -> None:
    roles = ("--role", Role.ADMINISTRATOR)
    call_command("staff", "create", "i@example.com", "--name", "Ibrahim Sani", *roles, stdout=io.StringIO())
    change = BreakGlassChange.objects.get()
    client = sign_in(Client(), factories.person("Third Person", Role.AUDITOR))
    assert "by one person alone" in text_of(client.get(reverse("operations:overview")))
    page = text_of(client.get(reverse("operations:break_glass", args=[change.pk])))
    assert f"The accounts of {first_administrator} and Ibrahim Sani were made on the server" in page
    assert "Cannot approve, send, resolve" not in page
    assert f"user {change.os_user} on" in text_of(client.get(reverse("operations:incidents")))


def test_neither_of_the_two_acknowledges_the_invitation(first_administrator: User) -> None:
    second = invited_second(first_administrator)
    change = BreakGlassChange.objects.get()
    for person in (first_administrator, second):
        with pytest.raises(errors.OwnAccountError):
            incidents.acknowledge_break_glass(change.pk, actor=person, note="It was me")
        with pytest.raises(IntegrityError), transaction.atomic():
            BreakGlassChange.objects.update(acknowledged_by=person, acknowledged_at=timezone.now(), note="Me")
    assert BreakGlassChange.objects.unacknowledged().exists()


def test_the_second_administrator_approves_changes_of_staff_at_once(first_administrator: User) -> None:
    second = invited_second(first_administrator)
    assert [one.cause for one in second.restrictions] == ["new_rights"]
    payload = changes.invitation(Role.APPROVER)
    assert changes.agreed(payload, first_administrator, second).status == Status.SUCCEEDED


def test_the_first_steps_leave_an_account_that_was_made_at_the_shell(first_administrator: User) -> None:
    by_shell = factories.person("Kemi Balogun", Role.ADMINISTRATOR)
    assert not bootstrap_state().is_open
    with pytest.raises(NotBootstrappingError):
        invite_second_administrator("i@example.com", full_name="I", actor=first_administrator)
    assert User.objects.get(pk=by_shell.pk).is_active


def test_an_account_made_at_the_shell_beside_an_invited_one_stays(first_administrator: User) -> None:
    invite_second_administrator("i@example.com", full_name="I", actor=first_administrator)
    User.objects.filter(pk=first_administrator.pk).update(last_login=None)
    assert [person.email for person in bootstrap_state().invited] == ["i@example.com"]


def governance_findings() -> list[str | None]:
    found = [one.id for one in run_checks(include_deployment_checks=True)]
    return [one for one in found if one and one.startswith("governance.")]


def test_an_installation_with_one_administrator_is_warned_and_told_the_way_out(
    first_administrator: User, sign_in: SignIn, settings: Any
) -> None:
    settings.ADMINISTRATORS_TO_SEND = 2
    client = sign_in(Client(), first_administrator)
    assert "staff create" not in text_of(client.get(reverse("operations:overview")))
    factories.person("Tunde Bello", Role.PREPARER)
    page = text_of(client.get(reverse("operations:overview")))
    assert "Invite the second administrator" not in page
    assert "manage.py staff create EMAIL --name NAME --role Administrator --break-glass REASON" in page
    assert governance_findings() == ["governance.W001"]
    factories.person("Kemi Balogun", Role.ADMINISTRATOR)
    assert governance_findings() == []


def test_the_overview_names_an_administrator_who_exists_and_has_not_signed_in(
    first_administrator: User, sign_in: SignIn, settings: Any
) -> None:
    """Made at the shell, so that no page renews the link: another account would be the wrong advice."""
    settings.ADMINISTRATORS_TO_SEND = 2
    create_staff("kemi@example.com", full_name="Kemi Balogun", roles=[Role.ADMINISTRATOR])
    factories.person("Tunde Bello", Role.PREPARER)
    page = text_of(sign_in(Client(), first_administrator).get(reverse("operations:overview")))
    assert "Kemi Balogun has not finished the set-up." in page
    assert "manage.py staff reset-password EMAIL --break-glass REASON" in page
    assert "staff create EMAIL" not in page


def governance_hint() -> str:
    found = [one for one in run_checks(include_deployment_checks=True) if one.id == "governance.W001"]
    return str(found[0].hint)


def test_the_check_names_administrators_who_have_not_opened_their_links(settings: Any) -> None:
    settings.ADMINISTRATORS_TO_SEND = 2
    first = create_staff("ada@example.com", full_name="Ada Obi", roles=[Role.ADMINISTRATOR])
    assert "Create one: manage.py staff create" in governance_hint()
    create_staff("i@example.com", full_name="Ibrahim Sani", roles=[Role.ADMINISTRATOR])
    hint = governance_hint()
    assert "staff create" not in hint
    assert "These administrators exist and have not opened their one-time links" in hint
    assert "ada@example.com, i@example.com" in hint
    assert 'reset-password EMAIL --reason "REASON"' in hint
    User.objects.filter(pk=first.pk).update(last_login=timezone.now())
    hint = governance_hint()
    assert "have not set up their accounts yet" in hint
    assert 'reset-password EMAIL --break-glass "REASON"' in hint


def test_the_check_leads_to_the_team_page_where_that_renews_the_link(
    first_administrator: User, settings: Any
) -> None:
    settings.ADMINISTRATORS_TO_SEND = 2
    User.objects.filter(pk=first_administrator.pk).update(last_login=timezone.now())
    invite_second_administrator("i@example.com", full_name="Ibrahim Sani", actor=first_administrator)
    assert (
        "yet: i@example.com. For a lost or expired link: Create a new link, on the Team" in governance_hint()
    )


def test_a_new_installation_is_not_warned(settings: Any) -> None:
    settings.ADMINISTRATORS_TO_SEND = 2
    assert governance_findings() == []


@pytest.mark.parametrize("what", ["other people", "break-glass", "a second who set up the account"])
def test_the_first_steps_end_for_good(first_administrator: User, what: str) -> None:
    assert bootstrap_state().is_open
    if what == "other people":
        factories.person("Tunde Bello", Role.PREPARER)
    elif what == "break-glass":
        factories.break_glass(first_administrator)
    else:
        second = factories.person("Kemi Balogun", Role.ADMINISTRATOR)
        record(Action.AUTHENTICATOR_ENROLLED, actor=second)
        User.objects.filter(pk=second.pk).update(is_active=False)
    assert not bootstrap_state().is_open


def test_the_second_administrator_waits_before_deciding_about_money_only(first_administrator: User) -> None:
    invite_second_administrator("i@example.com", full_name="I", actor=first_administrator)
    grant = RightsGrant.objects.get()
    assert (grant.prepared_by, grant.approved_by, grant.operation) == (first_administrator, None, None)


def test_nothing_is_sent_until_two_administrators_are_active(
    preparer: User, approver: User, administrator: User, settings: Any
) -> None:
    settings.ADMINISTRATORS_TO_SEND = product_settings.ADMINISTRATORS_TO_SEND
    operation = factories.approved(preparer, approver)
    with pytest.raises(errors.OperationError) as refused:
        factories.release(operation, approver)
    assert refused.value.refusal["code"] == Refusal.ADMINISTRATORS_MISSING
    without_authenticator("Third Person")
    with pytest.raises(errors.OperationError):
        factories.release(operation, approver)
    factories.person("Kemi Balogun", Role.ADMINISTRATOR)
    assert factories.release(operation, approver).status == Status.APPROVED


def test_a_group_that_nobody_agreed_on_is_not_recorded(as_administrator: Client, approver: User) -> None:
    groups.set_groups(approver, [groups.create_group("Treasury").pk], operation=uuid.uuid4())
    shown = text_of(as_administrator.get(reverse("governance:person", args=[approver.pk])))
    assert re.search(r"Group: Treasury \d+ \w+ \d+ Not recorded", shown)
    assert re.search(r"Role: Approver \d+ \w+ \d+ At account creation", shown)


def review(actor: User) -> Operation:
    members: dict[str, Any] = {
        "digest": report_digest(access_rows()),
        "people": 3,
        "rights": 3,
        "findings": "All right",
    }
    payload = AccessReviewPayload(**members)
    return prepare.prepare_operation(uuid.uuid4(), actor=actor, kind="access_review", payload=payload)


def test_a_stand_in_is_a_right_in_the_review_with_its_period_and_who_agreed(
    as_administrator: Client,
    administrator: User,
    second_administrator: User,
    approver: User,
    second_approver: User,
) -> None:
    treasury = group("Treasury", approver, second_approver)
    before = report_digest(access_rows())
    operation = factories.prepared_of_kind("delegation", leave(approver, second_approver, treasury), approver)
    factories.approve(operation, second_administrator)
    assert report_digest(access_rows()) != before
    [row] = [row for row in access_rows() if row.kind == RightKind.STAND_IN]
    delegation = Delegation.objects.get()
    assert (row.person, row.right) == (second_approver.pk, f"{approver.full_name} (Treasury)")
    assert row.agreed_by == f"{approver.full_name} + {second_administrator.full_name}"
    assert [datetime.fromisoformat(each) for each in (row.since, row.until)] == [
        delegation.starts_at,
        delegation.ends_at,
    ]
    shown = text_of(as_administrator.get(reverse("governance:access_review")))
    assert f"Stand-in for {approver.full_name} (Treasury)" in shown
    file = as_administrator.get(reverse("reports:csv", args=["access-rights"])).getvalue().decode()
    local = time_text(delegation.starts_at, ZoneInfo("Africa/Lagos"))
    assert local != row.since
    assert f"stand-in,{row.right},{local}" in file
    end_delegation(delegation.pk, actor=approver)
    assert report_digest(access_rows()) == before


def test_an_access_review_is_signed_off_by_two_people(
    administrator: User, second_administrator: User, approver: User
) -> None:
    operation = review(administrator)
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(operation, administrator)
    with pytest.raises(errors.PermissionMissingError):
        factories.approve(operation, approver)
    assert factories.approve(operation, second_administrator).status == Status.SUCCEEDED
    signed = AccessReview.objects.get()
    assert (signed.prepared_by, signed.approved_by) == (administrator, second_administrator)
    assert {row["name"] for row in signed.rows} == {"Zainab Musa", "Kemi Balogun", "Amara Okafor"}
    assert Entry.objects.filter(action=Action.ACCESS_REVIEWED).exists()


def test_a_review_of_rights_that_have_changed_is_not_signed_off(
    administrator: User, second_administrator: User, approver: User
) -> None:
    form = AccessReviewForm({"report": "0" * 64, "findings": "All right"})
    assert "Rights have changed since you opened the report" in str(form.errors)
    operation = review(administrator)
    approver.groups.add(Group.objects.get(name=Role.PREPARER))
    with pytest.raises(errors.OperationError) as refused:
        factories.approve(operation, second_administrator)
    assert refused.value.refusal["code"] == Refusal.ACCESS_CHANGED
    assert not AccessReview.objects.exists()


def test_an_access_review_is_prepared_and_read_on_the_pages(
    as_administrator: Client, second_administrator: User, sign_in: SignIn
) -> None:
    html = as_administrator.get(reverse("governance:access_review")).content.decode()
    link = re.search(r'href="(/operations/prepare/access_review/\?report=[0-9a-f]{64})"', html)
    assert link is not None
    values = {"report": link[1][-64:], "findings": "All right", "submission": str(uuid.uuid4())}
    page = as_administrator.post(link[1], values | {"step": "review"}).content.decode()
    assert "Sign off the access review: 2 people, 2 rights" in page
    assert not re.search(r">\s*20\d\d-\d\d-\d\d\s*<", html)
    with timezone.override("Africa/Lagos"):
        assert f">{local_day(second_administrator.created_at)}<" in html
    code = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
    assert code is not None
    as_administrator.post(link[1], values | {"step": "prepare", "digest": code[1]})
    operation = Operation.objects.get()
    rows = sign_in(Client(), second_administrator).get(reverse("governance:reviewed", args=[operation.pk]))
    assert "Kemi Balogun" in text_of(rows)


def test_an_overdue_review_is_a_warning(
    as_administrator: Client, administrator: User, second_administrator: User
) -> None:
    addresses = [reverse("governance:team"), reverse("operations:overview")]
    for address in addresses:
        assert "access review was due" not in text_of(as_administrator.get(address))
    User.objects.update(created_at=timezone.now() - REVIEW_INTERVAL - timedelta(days=1))
    for address in addresses:
        assert "access review was due" in text_of(as_administrator.get(address))
    factories.approve(review(administrator), second_administrator)
    for address in addresses:
        assert "access review was due" not in text_of(as_administrator.get(address))


def test_the_signed_report_is_exported_as_it_was(
    as_administrator: Client, administrator: User, second_administrator: User, approver: User
) -> None:
    operation = factories.approve(review(administrator), second_administrator)
    User.objects.filter(pk=approver.pk).update(full_name="Somebody Else")
    address = reverse("reports:csv", args=["access-rights"])
    signed, now = (
        as_administrator.get(address + query).getvalue().decode() for query in (f"?review={operation.pk}", "")
    )
    assert "Amara Okafor" in signed
    assert "Somebody Else" in now
    assert "Amara Okafor" in text_of(
        as_administrator.get(reverse("governance:reviewed", args=[operation.pk]))
    )


def test_the_number_of_approvals_links_to_what_the_person_approved(
    administrator: User, preparer: User, approver: User, second_approver: User
) -> None:
    administrator.groups.add(Group.objects.get(name=Role.AUDITOR))
    own, other = factories.approved(preparer, approver), factories.approved(preparer, second_approver)
    client = factories.sign_in(Client(), administrator)
    for page in (reverse("governance:team"), reverse("governance:person", args=[approver.pk])):
        shown = client.get(page).content.decode()
        [link] = re.findall(rf'href="([^"]+approved_by={approver.pk})">1</a>', shown)
    answer = client.get(link.replace("&amp;", "&"))
    assert [one.pk for one in answer.context["page"].rows] == [own.pk]
    assert approver.full_name in text_of(answer)
    assert own.pk != other.pk


def test_groups_name_their_active_members(
    as_administrator: Client, approver: User, second_approver: User
) -> None:
    group("Treasury", approver, second_approver)
    User.objects.filter(pk=second_approver.pk).update(is_active=False)
    shown = text_of(as_administrator.get(reverse("governance:groups")))
    assert approver.full_name in shown
    assert second_approver.full_name not in shown


def test_the_page_says_before_which_approvals_a_deactivation_ends(
    as_administrator: Client, preparer: User, approver: User, second_approver: User
) -> None:
    put_in_effect({"when": {"kinds": ["withdrawal"]}, "levels": [{"needed": 2}]})
    address = reverse("governance:deactivate", args=[approver.pk])
    shown = text_of(as_administrator.get(address))
    assert "Rule 1: too few people are left for" in shown
    assert "Nobody is left" not in shown
    User.objects.filter(pk=second_approver.pk).update(is_active=False)
    assert f"Nobody is left to approve what these people prepare: {preparer.full_name}" in text_of(
        as_administrator.get(address)
    )
    User.objects.filter(pk=second_approver.pk).update(is_active=True)
    factories.person("Third Approver", Role.APPROVER)
    assert "no longer be approved" not in text_of(as_administrator.get(address))
