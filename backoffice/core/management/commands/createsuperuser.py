"""Replaces Django's `manage.py createsuperuser`: there are no superusers, only roles."""

from backoffice.core.management.commands import changepassword


class Command(changepassword.Command):
    """Refuses, too."""
