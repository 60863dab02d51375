"""`manage.py createstaff`: create an account, such as the first ones of a new deployment."""

import getpass
import sys
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backoffice.accounts.errors import AccountsError
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.accounts.staff import create_staff


class Command(BaseCommand):
    """Asks for the password twice, or reads it from standard input with --password-stdin."""

    help = "Create a member of staff, who sets up an authenticator at the first sign-in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="the e-mail address that the person signs in with")
        parser.add_argument("--name", required=True, help="the person's full name")
        parser.add_argument(
            "--role", action="append", default=[], choices=Role.values, help="may be given several times"
        )
        parser.add_argument(
            "--password-stdin", action="store_true", help="read the password from standard input"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        email, name = options["email"].strip().lower(), options["name"].strip()
        password = _piped_password() if options["password_stdin"] else _typed_password()
        _check(User(email=email, full_name=name), password)
        try:
            user = create_staff(email, full_name=name, password=password, roles=options["role"])
        except AccountsError as exc:
            raise CommandError(str(exc)) from exc
        roles = ", ".join(options["role"]) or "no role yet"
        self.stdout.write(
            self.style.SUCCESS(f"Created {user.full_name} <{user.email}>, {roles}.")
            + "\nNext: sign in with this e-mail address and password. The first sign-in asks for an authenticator"
            "\napplication on a phone, then shows ten recovery codes once."
        )


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


def _piped_password() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _typed_password() -> str:
    password = getpass.getpass("Password (12 characters or more): ")
    if getpass.getpass("The same again: ") != password:
        raise CommandError("The two passwords differ. Nobody was created.")
    return password
