from collections.abc import Iterator
from typing import Any, ClassVar

from django.apps import apps
from django.core.management.commands import flush
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from backoffice.audit.models import ChainHead
from tests.append_only.triggers import lifted

Row = tuple[Any, ...]


class Command(flush.Command):
    """Django's flush, which also deletes from append-only tables and restores the first rows of the database.

    The first flush is Django's own, whose `post_migrate` creates roles and permissions; every later one restores the
    rows that exist then, in the tables that a test has changed. That takes a tenth of the time, after hundreds of
    tests.
    """

    initial: ClassVar[dict[str, dict[type[Model], list[Row]]]] = {}

    def handle(self, **options: Any) -> None:
        database = options["database"]
        connection = connections[database]
        with transaction.atomic(using=database):
            if database in self.initial:
                restore(connection, self.initial[database])
                return
            with lifted(connection):
                super().handle(**options)
                ChainHead.objects.using(database).create(pk=1)
            self.initial[database] = {
                model: rows(connection, model) for model in models_with_rows(connection)
            }


def restore(connection: BaseDatabaseWrapper, initial: dict[type[Model], list[Row]]) -> None:
    """Delete the rows of every table that differs from its initial rows, and insert these."""
    changed = [
        model for model in models_with_rows(connection) if rows(connection, model) != initial.get(model, [])
    ]
    changed += [model for model in initial if model not in changed and not model._base_manager.exists()]
    if not changed:
        return
    with lifted(connection, {model._meta.db_table for model in changed}), connection.cursor() as cursor:
        for model in changed:  # PostgreSQL's TRUNCATE would create new files for each table
            cursor.execute(f'DELETE FROM "{model._meta.db_table}"')  # noqa: S608 - a table of ours
        for model in changed:
            if found := initial.get(model):
                places = ", ".join(["%s"] * len(found[0]))
                cursor.executemany(f'INSERT INTO "{model._meta.db_table}" VALUES ({places})', found)  # noqa: S608


def models_with_rows(connection: BaseDatabaseWrapper) -> list[type[Model]]:
    """One model for each table that is not empty."""
    by_table = {model._meta.db_table: model for model in models()}
    parts = [f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM \"{name}\")" for name in by_table]  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts))
        return [by_table[name] for (name,) in cursor.fetchall()]


def rows(connection: BaseDatabaseWrapper, model: type[Model]) -> list[Row]:
    """All rows as stored."""
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{model._meta.db_table}" ORDER BY 1')  # noqa: S608 - a table of ours
        found: list[Row] = cursor.fetchall()
        return found


def models() -> Iterator[type[Model]]:
    """One model for each table."""
    return (model for model in apps.get_models(include_auto_created=True) if not model._meta.proxy)
