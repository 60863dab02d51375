from collections.abc import Iterator
from typing import Any, ClassVar

from django.apps import apps
from django.core.management.commands import flush
from django.db import connections, transaction
from django.db.models import Model

from backoffice.audit.models import ChainHead
from tests.append_only.triggers import lifted


class Command(flush.Command):
    """Django's flush, and the head of the audit log back at its beginning.

    The first is Django's own, whose `post_migrate` makes roles and permissions anew; the rows that are there then are
    what every later one puts back. That leaves the same and takes a tenth of the time, after hundreds of tests.
    """

    made: ClassVar[dict[str, list[list[Model]]]] = {}

    def handle(self, **options: Any) -> None:
        database = options["database"]
        with transaction.atomic(using=database), lifted(connections[database]):
            if database in self.made:
                empty(database)
                for rows in self.made[database]:
                    type(rows[0])._base_manager.using(database).bulk_create(rows)
            else:
                super().handle(**options)
                ChainHead.objects.using(database).create(pk=1)
                self.made[database] = everything(database)


def empty(database: str) -> None:
    """Delete every row; PostgreSQL's TRUNCATE would make new files for each table."""
    with connections[database].cursor() as cursor:
        for model in tables():
            cursor.execute(f'DELETE FROM "{model._meta.db_table}"')  # noqa: S608 - the name of a table of ours


def everything(database: str) -> list[list[Model]]:
    """The rows of each table that has any."""
    found = (list(model._base_manager.using(database)) for model in tables())
    return [rows for rows in found if rows]


def tables() -> Iterator[type[Model]]:
    """One model for each table."""
    return (model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy)
