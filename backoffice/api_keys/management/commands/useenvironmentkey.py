"""`manage.py useenvironmentkey`: go back to the API key of COUNTERSIGN_GATEWAY_API_KEY.

For emergencies, when the key in use is lost or was invalidated at the provider.
"""

from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import credentials


class Command(BaseCommand):
    """For the operator of the installation: no approval is possible while the provider cannot be reached."""

    help = (
        "Call the service with COUNTERSIGN_GATEWAY_API_KEY again, instead of the key that people switched to."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        with transaction.atomic():
            moved = credentials.switch_to_environment_key()
            if moved:
                audit.record(Action.KEY_SWITCHED, actor=None, target="the key that was switched to")
        if moved:
            self.stdout.write(
                "Calls go out with the key of the environment from now on. The other one is kept, encrypted."
            )
        else:
            self.stdout.write("The key of the environment is in use already. Nothing was changed.")
