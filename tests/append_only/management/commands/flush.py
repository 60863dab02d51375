from typing import Any

from django.core.management.commands import flush
from django.db import connections

from backoffice.audit.models import ChainHead
from tests.append_only.triggers import lifted


class Command(flush.Command):
    """Django's flush, and the head of the audit log back at its beginning."""

    def handle(self, **options: Any) -> None:
        with lifted(connections[options["database"]]):
            super().handle(**options)
        ChainHead.objects.using(options["database"]).create(pk=1)
