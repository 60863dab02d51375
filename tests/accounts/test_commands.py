"""Changing people on the command line: what is said, what is done, and what is on record."""

import io

import pytest
from django.core.management import CommandError, call_command

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry

pytestmark = pytest.mark.django_db

REASON = "Ticket 42, asked for by Zainab Musa"


def run(action: str, email: str, *arguments: str, reason: str = REASON) -> str:
    output = io.StringIO()
    call_command("staff", action, email, "--reason", reason, *arguments, stdout=output)
    return output.getvalue()


@pytest.mark.parametrize(
    ("action", "arguments", "recorded"),
    [
        ("set-roles", ["--role", "Auditor"], Action.STAFF_ROLES_CHANGED),
        ("deactivate", [], Action.STAFF_DEACTIVATED),
        ("reset-second-factor", [], Action.AUTHENTICATOR_RESET),
    ],
)
def test_commands_are_audited_with_the_reason(
    preparer: User, action: str, arguments: list[str], recorded: Action
) -> None:
    output = run(action, "Tunde@countersign.example", *arguments)
    entry = Entry.objects.get()
    assert (entry.action, entry.actor_label, entry.target_id) == (recorded, "Countersign", str(preparer.pk))
    assert entry.detail["reason"] == REASON
    assert output.startswith("Tunde Bello ")
    assert "All sessions have ended." in output


def test_set_roles_assigns_exactly_the_roles_named(preparer: User) -> None:
    assert "Approver, Auditor" in run("set-roles", preparer.email, "--role", "Approver", "--role", "Auditor")
    assert sorted(group.name for group in preparer.groups.all()) == [Role.APPROVER, Role.AUDITOR]
    assert "now has these roles: none" in run("set-roles", preparer.email)
    assert not preparer.groups.exists()


def test_deactivate_keeps_the_account_and_prevents_sign_in(preparer: User) -> None:
    run("deactivate", preparer.email)
    assert not User.objects.get(pk=preparer.pk).is_active


def test_reset_second_factor_deletes_the_authenticator(preparer: User) -> None:
    run("reset-second-factor", preparer.email)
    assert not AuthenticatorDevice.objects.exists()


@pytest.mark.parametrize("action", ["set-roles", "deactivate", "reset-second-factor"])
def test_commands_refuse_a_missing_reason_or_an_unknown_user(preparer: User, action: str) -> None:
    with pytest.raises(CommandError, match="--reason"):
        call_command("staff", action, preparer.email)
    with pytest.raises(CommandError, match="A reason is required"):
        run(action, preparer.email, reason="  ")
    with pytest.raises(CommandError, match="No account has the email address nobody@"):
        run(action, "nobody@countersign.example")
    assert not Entry.objects.exists()


def test_set_roles_refuses_a_role_that_does_not_exist(preparer: User) -> None:
    with pytest.raises(CommandError, match="invalid choice: 'Owner'"):
        run("set-roles", preparer.email, "--role", "Owner")
