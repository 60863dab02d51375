"""`manage.py staff`: create accounts, such as the first ones of a new deployment, and change them."""

from datetime import UTC
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from backoffice.accounts import break_glass, staff
from backoffice.accounts.break_glass import ChangedAccount, ShellCommand
from backoffice.accounts.models import User
from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.accounts.roles import Role

MAX_REASON_LENGTH = BreakGlassChange._meta.get_field("reason").max_length or 0
SECOND_ADMINISTRATOR = (
    "An incident is open on every overview until an approver, an auditor or a third administrator acknowledges that "
    "one person may have made both administrators."
)
_CHANGES = {
    "set-roles": "replace the person's roles and end all sessions; without --role, all roles are removed",
    "deactivate": "prevent a person from signing in, and end all sessions",
    "reactivate": "let a deactivated person sign in again",
    # The operator must verify the person's identity first, and send the link to that person only.
    "reset-password": "invalidate the password, or an unused link, and print a one-time link for a new password",
    "reset-second-factor": "delete password, authenticator and recovery codes, and print a one-time link for new ones",
}


class Command(BaseCommand):
    """A change of an account requires a reason for the audit log, since no user is signed in."""

    help = "Create a member of staff, or change an account."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser(
            "create", help="create an account, and print a one-time link for the person"
        )
        create.add_argument("--name", required=True, help="the person's full name")
        parsers = {"create": create}
        parsers |= {name: actions.add_parser(name, help=text) for name, text in _CHANGES.items()}
        for name, action in parsers.items():
            action.add_argument("email", help="the person's email address for signing in")
            why = action.add_mutually_exclusive_group(required=name != "create")
            why.add_argument(
                "--reason", default="", help="why, and who requested it; recorded in the audit log"
            )
            why.add_argument(
                "--break-glass",
                metavar="REASON",
                help="give or restore rights alone: raises an incident with this reason, your user and host",
            )
        for action in (create, parsers["set-roles"]):
            action.add_argument(
                "--role", action="append", default=[], choices=Role.values, help="may be given several times"
            )

    def handle(self, *_args: Any, action: str, reason: str, **options: Any) -> None:
        stated = options.pop("break_glass")
        command = ShellCommand((reason if stated is None else stated).strip(), stated is not None)
        if not command.reason and (command.is_break_glass or action != "create"):
            raise CommandError("A reason is required. Nothing was changed.")
        if len(command.reason) > MAX_REASON_LENGTH:
            raise CommandError(
                f"The reason is too long: at most {MAX_REASON_LENGTH} characters. Nothing was changed."
            )
        try:
            done, message = (_create if action == "create" else _change)(action, command, **options)
        except (break_glass.ShellRefusedError, staff.EmailTakenError) as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(self.style.SUCCESS(message) + _next_steps(done))


def _create(
    _action: str, command: ShellCommand, *, email: str, name: str, role: list[str], **_options: Any
) -> tuple[ChangedAccount, str]:
    email, name = email.strip().lower(), name.strip()
    _check(User(email=email, full_name=name))
    done = break_glass.create_staff(email, full_name=name, roles=role, command=command)
    return done, f"Created {name} <{email}>, {', '.join(role) or 'no roles yet'}."


def _change(action: str, command: ShellCommand, *, email: str, **options: Any) -> tuple[ChangedAccount, str]:
    try:
        user = User.objects.get_by_natural_key(email)
    except User.DoesNotExist as exc:
        raise CommandError(f"No account has the email address {email}. Nothing was changed.") from exc
    match action:
        case "set-roles":
            done = break_glass.set_roles(user.pk, roles=options["role"], command=command)
            now = f"now has these roles: {', '.join(options['role']) or 'none'}. All sessions have ended."
        case "deactivate":
            done = break_glass.deactivate_staff(user.pk, command=command)
            now = "can no longer sign in. All sessions have ended."
        case "reactivate":
            done = break_glass.reactivate_staff(user.pk, command=command)
            now = "can sign in again."
        case "reset-password":
            done = break_glass.reset_password(user.pk, command=command)
            now = "must choose a new password. All sessions have ended."
        case _:
            done = break_glass.reset_second_factor(user.pk, command=command)
            now = "must choose a new password and set up a new authenticator. All sessions have ended."
    return done, f"{user} {now}"


def _check(user: User) -> None:
    """Raises CommandError with all reasons at once."""
    try:
        user.clean_fields(exclude=["password"])
        user.validate_unique()
    except ValidationError as exc:
        problems = [f"{field}: {' '.join(texts)}" for field, texts in exc.message_dict.items()]
        raise CommandError("No account was created.\n  " + "\n  ".join(problems)) from exc


def _next_steps(done: ChangedAccount) -> str:
    """The link, which is shown only here, and what break-glass has caused."""
    lines = []
    if done.token:
        path = reverse("accounts:set_up", args=[done.token])
        hours = int(staff.SETUP_LINK_LIFETIME.total_seconds() // 3600)
        lines += [
            f"One-time link for {done.user}, valid for {hours} hours, shown only now. Send it to this person only:",
            f"  {settings.PUBLIC_URL}{path}",
        ]
        if not settings.PUBLIC_URL:
            lines.append(
                "  (COUNTERSIGN_PUBLIC_URL is not set: put the address of this installation in front.)"
            )
        lines.append("With it the person chooses a password and sets up an authenticator.")
    if done.incident and not done.incident.is_break_glass:
        lines.append(SECOND_ADMINISTRATOR)
    elif done.incident:
        until = f"{done.incident.restricted_until.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        lines.append(
            "Break-glass: an incident is open on every overview until another person acknowledges it. "
            f"{done.user} cannot approve, send, resolve or acknowledge before {until}."
        )
    return "".join(f"\n{line}" for line in lines)
