"""Changing people on the command line: what needs break-glass, what is said, what is done, and what is on record."""

import io
import os
import re
import shlex
import socket
from datetime import UTC, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import break_glass
from backoffice.accounts.management.commands.staff import Command as StaffCommand
from backoffice.accounts.models import AuthenticatorDevice, SetupLink, User
from backoffice.accounts.restrictions import AccountChange, BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.operations.errors import OwnAccountError
from backoffice.operations.lifecycle import incidents
from tests import factories
from tools.processes import ROOT

pytestmark = pytest.mark.django_db

REASON = "Ticket 42, asked for by Zainab Musa"
EMAIL = "ada@countersign.example"
CREATE = ("create", EMAIL, "--name", "Ada Obi")
GIVES_RIGHTS = {
    "create": (*CREATE, "--role", "Approver"),
    "create an administrator": (*CREATE, "--role", "Administrator"),
    "create without roles": CREATE,
    "set-roles": ("set-roles", "tunde@countersign.example", "--role", "Preparer", "--role", "Approver"),
    "reactivate": ("reactivate", "tunde@countersign.example"),
    "reset-password": ("reset-password", "tunde@countersign.example"),
    "reset-second-factor": ("reset-second-factor", "tunde@countersign.example"),
}
RECORDED = {
    "create": Action.STAFF_CREATED,
    "create an administrator": Action.STAFF_CREATED,
    "create without roles": Action.STAFF_CREATED,
    "set-roles": Action.STAFF_ROLES_CHANGED,
    "reactivate": Action.STAFF_REACTIVATED,
    "reset-password": Action.PASSWORD_RESET,
    "reset-second-factor": Action.AUTHENTICATOR_RESET,
}


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command("staff", *arguments, stdout=output)
    return output.getvalue()


@pytest.fixture
def administrators(administrator: User) -> list[User]:
    """Two active administrators: the command line no longer makes anybody without a trace."""
    return [administrator, factories.person("Ibrahim Sani", Role.ADMINISTRATOR)]


def why(command: tuple[str, ...]) -> tuple[str, ...]:
    return () if command[0] == "create" else ("--reason", REASON)


@pytest.mark.parametrize("name", GIVES_RIGHTS)
def test_giving_or_restoring_rights_needs_break_glass(
    administrators: list[User], preparer: User, name: str
) -> None:
    command = GIVES_RIGHTS[name]
    with pytest.raises(CommandError, match=r"use --break-glass REASON.*24 hours.*Nothing was changed"):
        run(*command, *why(command))
    assert set(User.objects.all()) == {*administrators, preparer}
    assert User.objects.get(pk=preparer.pk).password == preparer.password
    assert AuthenticatorDevice.objects.filter(user=preparer).exists()
    assert [group.name for group in preparer.groups.all()] == ["Preparer"]
    assert not Entry.objects.exists()


@pytest.mark.parametrize("name", GIVES_RIGHTS)
def test_break_glass_is_recorded_with_user_and_host_and_raises_an_incident(
    administrators: list[User], preparer: User, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    output = run(*GIVES_RIGHTS[name], "--break-glass", REASON)
    incident = BreakGlassChange.objects.get()
    assert (incident.reason, incident.host, incident.is_open) == (REASON, socket.gethostname(), True)
    assert incident.os_user not in {"somebody-else", ""}
    assert incident.restricted_until - incident.at == timedelta(hours=24)
    assert "an incident is open on every overview" in output
    assert f"{incident.restricted_until.astimezone(UTC):%Y-%m-%d %H:%M} UTC" in output

    origin = {"reason": REASON, "os_user": incident.os_user, "host": incident.host}
    changed, raised = (
        Entry.objects.get(action=action) for action in (RECORDED[name], Action.BREAK_GLASS_USED)
    )
    assert origin.items() <= changed.detail.items()
    assert origin.items() <= raised.detail.items()
    assert (raised.target_id, raised.actor_label) == (str(incident.user.pk), "Countersign")


def test_the_length_of_the_restriction_is_a_setting(administrators: list[User], settings: Settings) -> None:
    settings.BREAK_GLASS_RESTRICTION_HOURS = 48
    run(*CREATE, "--role", "Approver", "--break-glass", REASON)
    change = BreakGlassChange.objects.get()
    assert change.restricted_until - change.at == timedelta(hours=48)


def test_a_user_without_a_name_is_recorded_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert break_glass.ShellCommand("").os_user == "uid 4000000000"


@pytest.mark.parametrize("present", [0, 1])
def test_administrators_need_no_break_glass_until_two_are_active(present: int) -> None:
    for number in range(present):
        factories.person(f"Admin{number} Obi", Role.ADMINISTRATOR)
    assert "Created Ada Obi <ada@countersign.example>, Administrator." in run(
        *CREATE, "--role", "Administrator"
    )
    assert not BreakGlassChange.objects.with_break_glass().exists()
    assert Entry.objects.get(action=Action.STAFF_CREATED).detail["host"] == socket.gethostname()


def test_the_second_administrator_made_at_the_shell_is_an_incident() -> None:
    """As the one whom the first administrator invites: one person may have made both accounts."""
    assert "An incident" not in run(*CREATE, "--role", "Administrator")
    assert not BreakGlassChange.objects.exists()
    second = ("create", "ibrahim@countersign.example", "--name", "Ibrahim Sani", "--role", "Administrator")
    assert "until an approver, an auditor or a third administrator acknowledges" in run(*second)
    first_account, second_account = User.objects.order_by("pk")
    incident = BreakGlassChange.objects.get()
    assert (incident.change, incident.user, incident.invited_by, incident.host) == (
        AccountChange.INVITED_ALONE,
        second_account,
        first_account,
        socket.gethostname(),
    )
    assert not incident.is_break_glass
    assert second_account.restrictions == ()
    assert not Entry.objects.filter(action=Action.BREAK_GLASS_USED).exists()


def test_an_administrator_restored_beside_another_is_an_incident(administrator: User) -> None:
    run("deactivate", administrator.email, "--reason", REASON)
    run(*CREATE, "--role", "Administrator")
    assert not BreakGlassChange.objects.exists()
    run("reset-password", administrator.email, "--reason", REASON)
    assert not BreakGlassChange.objects.exists()
    run("reactivate", administrator.email, "--reason", REASON)
    assert BreakGlassChange.objects.get().is_about(User.objects.get(email=EMAIL))


SECOND = ("create", "ibrahim@countersign.example", "--name", "Ibrahim Sani", "--role", "Administrator")
RESETS = ("reset-password", "reset-second-factor")


@pytest.fixture
def unopened() -> list[User]:
    """Two administrators made at the shell, whose links nobody has opened."""
    run(*CREATE, "--role", "Administrator")
    run(*SECOND)
    return list(User.objects.order_by("pk"))


@pytest.mark.parametrize("action", RESETS)
def test_the_first_links_are_renewed_with_a_reason_until_one_was_opened(
    unopened: list[User], action: str
) -> None:
    earlier = SetupLink.objects.get(user=unopened[0]).digest
    with pytest.raises(CommandError, match="not needed until an administrator has signed in"):
        run(action, EMAIL, "--break-glass", REASON)
    assert "/account/set-up/" in run(action, EMAIL, "--reason", REASON)
    assert SetupLink.objects.get(user=unopened[0]).digest != earlier
    entry = Entry.objects.filter(action=Action.SETUP_LINK_CREATED).latest("position")
    assert (entry.target_id, entry.detail["reason"]) == (str(unopened[0].pk), REASON)
    assert entry.detail["os_user"]


def test_a_renewed_first_link_is_an_incident_as_a_second_account_is(unopened: list[User]) -> None:
    """Otherwise the incident would name only who made the accounts, and not who got hold of both by new links."""
    assert "until an approver, an auditor or a third administrator" in run(
        "reset-password", EMAIL, "--reason", REASON
    )
    incident = BreakGlassChange.objects.latest("pk")
    assert BreakGlassChange.objects.count() == 2
    assert (incident.change, incident.reason) == (AccountChange.INVITED_ALONE, REASON)
    assert [incident.is_about(person) for person in unopened] == [True, True]
    assert break_glass.are_links_unopened()
    for person in User.objects.all():
        assert person.restrictions == ()


@pytest.mark.parametrize("what", ["signed in", "in the log", "others", "roles", "break-glass", "deactivated"])
@pytest.mark.parametrize("action", RESETS)
def test_first_links_need_break_glass_once_the_installation_is_used(
    unopened: list[User], action: str, what: str
) -> None:
    """Also for the one who did not sign in: the other one may be somebody else now."""
    first, second = unopened
    match what:
        case "signed in":
            User.objects.filter(pk=second.pk).update(last_login=timezone.now())
        case "in the log":
            record(Action.SETUP_LINK_USED, actor=second, target=second)
        case "others":
            factories.person("Tunde Bello", Role.PREPARER)
        case "roles":
            first.groups.add(Group.objects.get(name=Role.APPROVER))
        case "break-glass":
            factories.break_glass(second)
        case _:
            User.objects.filter(pk=first.pk).update(is_active=False)
            factories.person("Kemi Balogun", Role.ADMINISTRATOR)
    before = list(SetupLink.objects.values_list("digest"))
    with pytest.raises(CommandError, match="use --break-glass REASON"):
        run(action, EMAIL, "--reason", REASON)
    assert list(SetupLink.objects.values_list("digest")) == before


@pytest.mark.parametrize(
    "command", [GIVES_RIGHTS["create an administrator"], ("set-roles", EMAIL, "--role", "Approver")]
)
def test_unopened_links_allow_nothing_but_their_renewal(
    unopened: list[User], command: tuple[str, ...]
) -> None:
    other = tuple(
        "eve@countersign.example" if word == EMAIL and command[0] == "create" else word for word in command
    )
    with pytest.raises(CommandError, match="use --break-glass REASON"):
        run(*other, *why(command))


def test_whoever_has_one_of_two_accounts_made_at_the_shell_does_not_acknowledge_that(
    administrator: User,
) -> None:
    run(*CREATE, "--role", "Administrator")
    incident = BreakGlassChange.objects.get()
    for person in (administrator, User.objects.get(email=EMAIL)):
        with pytest.raises(OwnAccountError):
            incidents.acknowledge_break_glass(incident.pk, actor=person, note="It was me")
    auditor = factories.person("Third Person", Role.AUDITOR)
    assert not incidents.acknowledge_break_glass(incident.pk, actor=auditor, note="Met both").is_open


@pytest.mark.parametrize("roles", [[], ["Preparer"], ["Approver"], ["Administrator", "Approver"]])
@pytest.mark.parametrize("with_break_glass", [False, True])
def test_only_administrators_are_created_until_two_are_active(
    administrator: User, roles: list[str], with_break_glass: bool
) -> None:
    given = [word for role in roles for word in ("--role", role)]
    more = ["--break-glass", REASON] if with_break_glass else []
    with pytest.raises(
        CommandError, match=r"only administrators can be created or restored.* administrators: 1"
    ):
        run(*CREATE, *given, *more)
    assert list(User.objects.all()) == [administrator]


@pytest.mark.parametrize("action", ["reactivate", "reset-password", "reset-second-factor"])
def test_the_only_administrator_is_restored_without_break_glass_while_there_are_no_other_people(
    administrator: User, action: str
) -> None:
    run(action, administrator.email, "--reason", REASON)
    assert not BreakGlassChange.objects.exists()


def test_administrators_get_no_other_role_until_two_are_active(administrator: User) -> None:
    with pytest.raises(CommandError, match="only administrators can be created or restored"):
        run(
            "set-roles",
            administrator.email,
            "--role",
            "Administrator",
            "--role",
            "Approver",
            "--reason",
            REASON,
        )


@pytest.mark.parametrize("action", ["create", "reactivate", "reset-password", "reset-second-factor"])
def test_one_administrator_beside_other_people_is_no_new_installation(
    administrator: User, preparer: User, action: str
) -> None:
    """Otherwise one person at a shell could make a second administrator unnoticed and pay with both."""
    command = (*CREATE, "--role", "Administrator") if action == "create" else (action, administrator.email)
    with pytest.raises(CommandError, match="--break-glass"):
        run(*command)
    run(*command, "--break-glass", REASON)
    assert BreakGlassChange.objects.count() == 1


def test_an_inactive_administrator_does_not_count(administrators: list[User]) -> None:
    User.objects.filter(pk=administrators[1].pk).update(is_active=False)
    run(*CREATE, "--role", "Administrator")
    with pytest.raises(CommandError, match="--break-glass"):
        run("create", "eve@countersign.example", "--name", "Eve Obi", "--role", "Administrator")


@pytest.mark.parametrize("command", [("deactivate",), ("set-roles",)])
def test_fewer_than_two_administrators_are_left_with_break_glass_only(
    administrators: list[User], command: tuple[str, ...]
) -> None:
    action, *more = command
    with pytest.raises(CommandError, match="fewer than two active administrators: use --break-glass"):
        run(action, administrators[0].email, *more, "--reason", REASON)
    run(action, administrators[0].email, *more, "--break-glass", REASON)
    with pytest.raises(CommandError, match="use --break-glass"):
        run(*CREATE, "--role", "Administrator")
    assert BreakGlassChange.objects.count() == 1


def test_taking_rights_needs_a_reason_only(
    administrators: list[User], preparer: User, approver: User
) -> None:
    run("set-roles", preparer.email, "--reason", REASON)
    run("deactivate", approver.email, "--reason", REASON)
    assert not BreakGlassChange.objects.exists()
    with pytest.raises(CommandError, match="This gives no rights: leave out --break-glass"):
        run("deactivate", preparer.email, "--break-glass", REASON)
    with pytest.raises(CommandError, match="--break-glass"):
        run("set-roles", preparer.email, "--role", "Preparer", "--reason", REASON)


def test_break_glass_is_refused_where_it_is_not_needed() -> None:
    with pytest.raises(CommandError, match="Break-glass is not needed until two administrators are active"):
        run(*CREATE, "--role", "Administrator", "--break-glass", REASON)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("action", "arguments", "recorded"),
    [
        ("set-roles", [], Action.STAFF_ROLES_CHANGED),
        ("deactivate", [], Action.STAFF_DEACTIVATED),
    ],
)
def test_commands_are_audited_with_reason_user_and_host(
    preparer: User, action: str, arguments: list[str], recorded: Action
) -> None:
    output = run(action, "Tunde@countersign.example", *arguments, "--reason", REASON)
    entry = Entry.objects.get()
    assert (entry.action, entry.actor_label, entry.target_id) == (recorded, "Countersign", str(preparer.pk))
    assert (entry.detail["reason"], entry.detail["host"]) == (REASON, socket.gethostname())
    assert entry.detail["os_user"]
    assert output.startswith("Tunde Bello ")
    assert "All sessions have ended." in output


def test_set_roles_assigns_exactly_the_roles_named(administrators: list[User], preparer: User) -> None:
    named = ("--role", "Approver", "--role", "Auditor")
    assert "Approver, Auditor" in run("set-roles", preparer.email, *named, "--break-glass", REASON)
    assert sorted(group.name for group in preparer.groups.all()) == [Role.APPROVER, Role.AUDITOR]
    assert BreakGlassChange.objects.get().roles == [Role.APPROVER, Role.AUDITOR]
    assert "now has these roles: none" in run("set-roles", preparer.email, "--reason", REASON)
    assert not preparer.groups.exists()


def test_deactivate_keeps_the_account_and_prevents_sign_in(
    administrators: list[User], preparer: User
) -> None:
    run("reset-password", preparer.email, "--break-glass", REASON)
    run("deactivate", preparer.email, "--reason", REASON)
    assert not User.objects.get(pk=preparer.pk).is_active
    assert not SetupLink.objects.exists()
    run("reactivate", preparer.email, "--break-glass", REASON)
    assert User.objects.get(pk=preparer.pk).is_active


def test_reset_second_factor_deletes_authenticator_and_password(
    administrators: list[User], preparer: User
) -> None:
    output = run("reset-second-factor", preparer.email, "--break-glass", REASON)
    assert "must choose a new password and set up a new authenticator" in output
    assert not AuthenticatorDevice.objects.filter(user=preparer).exists()
    assert not User.objects.get(pk=preparer.pk).has_usable_password()
    assert SetupLink.objects.get().user == preparer


def test_the_command_prints_the_link_and_no_password_exists(settings: Settings) -> None:
    settings.PUBLIC_URL = "https://pay.example"
    output = run(*CREATE, "--role", "Administrator")
    [token] = re.findall(r"https://pay\.example/account/set-up/([\w-]+)/", output)
    assert len(token) >= 43  # 256 bits
    assert "valid for 48 hours" in output
    link = SetupLink.objects.get()
    assert token not in link.digest
    assert link.expires_at - link.created_at == timedelta(hours=48)
    assert not User.objects.get().has_usable_password()
    assert token not in str(list(Entry.objects.values()))
    assert Entry.objects.filter(action=Action.SETUP_LINK_CREATED, target_id=str(link.user.pk)).count() == 1


def test_the_command_prints_the_path_if_the_public_address_is_not_set(settings: Settings) -> None:
    settings.PUBLIC_URL = ""
    output = run(*CREATE, "--role", "Administrator")
    assert re.search(r"^  /account/set-up/[\w-]+/$", output, re.MULTILINE)
    assert "COUNTERSIGN_PUBLIC_URL is not set" in output


@pytest.mark.parametrize(
    ("email", "name", "reason"),
    [
        ("ada", "Ada Obi", "email: Enter a valid email address"),
        ("zainab@countersign.example", "Ada Obi", "email: .*already exists"),
        (EMAIL, "  ", "full_name: This field cannot be blank"),
        (EMAIL, "A" * 121, "full_name: .*at most 120"),
    ],
)
def test_create_reports_invalid_input_and_creates_no_user(
    administrator: User, email: str, name: str, reason: str
) -> None:
    with pytest.raises(CommandError, match=f"(?s)No account was created.*{reason}"):
        run("create", email, "--name", name, "--role", "Administrator")
    assert list(User.objects.all()) == [administrator]


@pytest.mark.parametrize(
    "action", ["set-roles", "deactivate", "reactivate", "reset-password", "reset-second-factor"]
)
def test_commands_refuse_a_missing_reason_or_an_unknown_user(preparer: User, action: str) -> None:
    with pytest.raises(CommandError, match="--reason"):
        run(action, preparer.email)
    for option in ("--reason", "--break-glass"):
        with pytest.raises(CommandError, match="A reason is required"):
            run(action, preparer.email, option, "  ")
        with pytest.raises(CommandError, match="The reason is too long: at most 500"):
            run(action, preparer.email, option, "x" * 501)
    with pytest.raises(CommandError, match="No account has the email address nobody@"):
        run(action, "nobody@countersign.example", "--reason", REASON)
    assert not Entry.objects.exists()


def test_create_refuses_break_glass_without_a_reason(administrators: list[User]) -> None:
    with pytest.raises(CommandError, match="A reason is required"):
        run(*CREATE, "--role", "Preparer", "--break-glass", "")


@pytest.mark.parametrize("command", [(*CREATE, "--role", "Owner"), ("set-roles", EMAIL, "--role", "Owner")])
def test_a_role_that_does_not_exist_is_refused(command: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="invalid choice: 'Owner'"):
        run(*command, *why(command))


@pytest.mark.parametrize("name", ["createsuperuser", "changepassword"])
def test_djangos_own_commands_are_not_available(preparer: User, name: str) -> None:
    with pytest.raises(CommandError, match=r"Not available: use `manage.py staff`"):
        call_command(name, preparer.email)
    assert User.objects.get().password == preparer.password


DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_documented_commands_can_be_run(document: Path) -> None:
    """Each that has an option: in tables and sentences a name alone is not a whole command."""
    for written in re.findall(r"manage\.py staff ([^`\n]*--[^`\n]*)", document.read_text()):
        parser = StaffCommand().create_parser("manage.py", "staff")
        assert parser.parse_args(shlex.split(written)).email, written
