"""`manage.py setup`: the second half, with the settings that the first one stored (`preparation`)."""

import re
from argparse import ArgumentParser
from typing import Any, cast

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from backoffice.accounts import break_glass, staff
from backoffice.accounts.break_glass import REQUIRED_ADMINISTRATORS, ShellCommand
from backoffice.accounts.management.commands.staff import SECOND_ADMINISTRATOR
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.installation.preparation import add_arguments

_PERSON = re.compile(r"\s*([^<>]+?)\s*<([^<>\s]+@[^<>\s]+)>\s*")


class Command(BaseCommand):
    """Every step reports what it did, or that there was nothing to do. Nothing that exists is overwritten."""

    help = (
        "Set up an installation: variables, keys, database, roles, migrations, checks, first administrators."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(cast(ArgumentParser, parser))

    def handle(self, *_args: Any, administrator: list[str], no_input: bool, **_options: Any) -> None:
        people = [_person(text) for text in administrator]
        call_command("migrate", verbosity=1, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        call_command("check", deploy=True)
        self._create_administrators(people, may_ask=not no_input)

    def _create_administrators(self, people: list[tuple[str, str]], *, may_ask: bool) -> None:
        """The first two, as `manage.py staff create` does while the installation is new; each with a one-time link."""
        present = list(User.objects.filter(is_active=True, groups__name=Role.ADMINISTRATOR).order_by("pk"))
        missing = REQUIRED_ADMINISTRATORS - len(present)
        if missing <= 0:
            self.stdout.write(f"{len(present)} administrators exist: nothing to create.")
            waiting = [user.email for user in present if user.last_login is None]
            if waiting:
                self.stdout.write(f"Not signed in yet: {', '.join(waiting)}. {_for_a_lost_link()}")
            return
        if not break_glass.is_bootstrapping():
            raise CommandError(
                f"There are {len(present)} active administrators, and this installation is not new. Create another "
                "one with manage.py staff create … --break-glass REASON, which raises an incident."
            )
        new = [person for person in people if not User.objects.filter(email=person[1].lower()).exists()]
        while may_ask and len(new) < missing:
            new.append(_person(input("Administrator, as Name <email>: ")))
        if len(new) < missing:
            raise CommandError(
                'No administrator can sign in yet: give --administrator "NAME <EMAIL>" twice. Everything else is done.'
            )
        for name, email in new[:missing]:
            self._create(name, email)
        self.stdout.write(SECOND_ADMINISTRATOR)
        self.stdout.write(
            "Send each link to that person only. Both can sign in, and invite everybody else on the Team page."
        )

    def _create(self, name: str, email: str) -> None:
        command = ShellCommand("First start of the installation")
        done = break_glass.create_staff(email, full_name=name, roles=[Role.ADMINISTRATOR], command=command)
        path = reverse("accounts:set_up", args=[done.token])
        hours = int(staff.SETUP_LINK_LIFETIME.total_seconds() // 3600)
        self.stdout.write(f"One-time link for {done.user}, valid for {hours} hours, shown only now:")
        self.stdout.write(f"  {settings.PUBLIC_URL}{path}")


def _for_a_lost_link() -> str:
    option = "--reason" if break_glass.are_links_unopened() else "--break-glass"
    return f'For a lost or expired link: manage.py staff reset-password EMAIL {option} "REASON".'


def _person(text: str) -> tuple[str, str]:
    found = _PERSON.fullmatch(text)
    if found is None:
        raise CommandError(f'"{text}" is not like Ada Obi <ada@example.com>. Nothing was created.')
    return found[1], found[2]
