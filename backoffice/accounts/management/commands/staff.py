"""`manage.py staff`: create accounts, such as the first ones of a new deployment, and change them."""

import getpass
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role


class Command(BaseCommand):
    """A change of an account requires a reason for the audit log, since no user is signed in."""

    help = "Create a member of staff, or change an account."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser(
            "create", help="create an account; the person sets up an authenticator at the first sign-in"
        )
        create.add_argument("--name", required=True, help="the person's full name")
        create.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )
        roles = actions.add_parser(
            "set-roles",
            help="replace the person's roles and end all sessions; without --role, all roles are removed",
        )
        deactivate = actions.add_parser(
            "deactivate", help="prevent a person from signing in, and end all sessions"
        )
        # The operator must verify the person's identity first: afterwards the password alone allows enrolment.
        reset = actions.add_parser(
            "reset-second-factor",
            help="delete authenticator and recovery codes; the next sign-in sets up new ones",
        )
        for action in (create, roles, deactivate, reset):
            action.add_argument("email", help="the person's email address for signing in")
        for action in (create, roles):
            action.add_argument(
                "--role", action="append", default=[], choices=Role.values, help="may be given several times"
            )
        for action in (roles, deactivate, reset):
            action.add_argument(
                "--reason", required=True, help="why, and who requested it; recorded in the audit log"
            )

    def handle(self, *_args: Any, action: str, **options: Any) -> None:
        message = self._create(**options) if action == "create" else self._change(action, **options)
        self.stdout.write(message)

    def _create(
        self, *, email: str, name: str, role: list[str], password_stdin: bool, **_options: Any
    ) -> str:
        email, name = email.strip().lower(), name.strip()
        password = sys.stdin.readline().rstrip("\r\n") if password_stdin else _typed_password()
        _check(User(email=email, full_name=name), password)
        try:
            user = staff.create_staff(email, full_name=name, password=password, roles=role)
        except staff.EmailTakenError as exc:
            raise CommandError(str(exc)) from exc
        return (
            self.style.SUCCESS(
                f"Created {user.full_name} <{user.email}>, {', '.join(role) or 'no roles yet'}."
            )
            + "\nNext: sign in with this email address and password. The first sign-in sets up an authenticator app"
            "\nand shows ten recovery codes once."
        )

    def _change(self, action: str, *, email: str, reason: str, **options: Any) -> str:
        if not reason.strip():
            raise CommandError("A reason is required: use --reason. Nothing was changed.")
        try:
            user = User.objects.get_by_natural_key(email)
        except User.DoesNotExist as exc:
            raise CommandError(f"No account has the email address {email}. Nothing was changed.") from exc
        arguments: dict[str, Any] = {"actor": None, "reason": reason.strip()}
        match action:
            case "set-roles":
                staff.set_roles(user.pk, roles=options["role"], **arguments)
                done = f"{user} now has these roles: {', '.join(options['role']) or 'none'}."
            case "deactivate":
                staff.deactivate_staff(user.pk, **arguments)
                done = f"{user} can no longer sign in."
            case _:
                staff.reset_second_factor(user.pk, **arguments)
                done = f"{user} must set up a new authenticator at the next sign-in."
        return self.style.SUCCESS(f"{done} All sessions have ended.")


def _check(user: User, password: str) -> None:
    """Raises CommandError with all reasons at once."""
    problems = []
    try:
        user.clean_fields(exclude=["password"])
        user.validate_unique()
    except ValidationError as exc:
        problems += [f"{field}: {' '.join(texts)}" for field, texts in exc.message_dict.items()]
    try:
        validate_password(password, user)
    except ValidationError as exc:
        problems += [f"password: {text}" for text in exc.messages]
    if problems:
        raise CommandError("Nobody was created.\n  " + "\n  ".join(problems))


def _typed_password() -> str:
    password = getpass.getpass("Password (12 characters or more): ")
    if getpass.getpass("Repeat the password: ") != password:
        raise CommandError("The two passwords differ. Nobody was created.")
    return password
