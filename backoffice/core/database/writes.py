"""What the runtime role may do to the rows of a model's table, besides reading them.

A model says so with `WRITES`; without it, rows may be inserted, updated and deleted. `TRIGGERS_INSERT_INTO` names
tables without a model, into which triggers of its table insert with the rights of the runtime role.
`CALLS_AS_OWNER` names SECURITY DEFINER functions, which work with the rights of the owner.
"""

from typing import NamedTuple

from django.apps import apps
from django.db import models


class Writes(NamedTuple):
    """Privileges on a table. `update` names the fields that may change, or is True for all of them."""

    insert: bool = True
    update: bool | tuple[str, ...] = True
    delete: bool = True


ANY = Writes()
NEVER_DELETED = Writes(delete=False)
APPEND_ONLY = Writes(update=(), delete=False)
READ_ONLY = Writes(insert=False, update=(), delete=False)

# Made by the migrations alone: what roles exist and what they may.
_OF_DJANGO = {
    "auth.permission": READ_ONLY,
    "auth.group": READ_ONLY,
    "auth.group_permissions": READ_ONLY,
    "contenttypes.contenttype": READ_ONLY,
}


def appended(*changing: str) -> Writes:
    """Rows are never deleted, and only these fields change."""
    return Writes(update=changing, delete=False)


class TableRights(NamedTuple):
    """What the runtime role may do to one table besides SELECT. `columns` may be updated; None: all of them."""

    insert: bool
    delete: bool
    columns: frozenset[str] | None


SELECT_ONLY = TableRights(insert=False, delete=False, columns=frozenset())
"""The rights on a table that belongs to no installed model."""
INSERT_ONLY = TableRights(insert=True, delete=False, columns=frozenset())


def rights_by_table() -> dict[str, TableRights]:
    """The rights on the table of each installed model, and on those that their triggers insert into."""
    found = apps.get_models(include_auto_created=True, include_swapped=True)
    by_triggers = {
        table: INSERT_ONLY for model in found for table in getattr(model, "TRIGGERS_INSERT_INTO", ())
    }
    return by_triggers | {model._meta.db_table: _rights_on(model) for model in found}


def functions_of_owner() -> frozenset[str]:
    """The SECURITY DEFINER functions, which work with the rights of the owner, that the runtime role may call."""
    return frozenset(name for model in apps.get_models() for name in getattr(model, "CALLS_AS_OWNER", ()))


def _rights_on(model: type[models.Model]) -> TableRights:
    writes: Writes = getattr(model, "WRITES", _OF_DJANGO.get(model._meta.label_lower, ANY))
    names = () if isinstance(writes.update, bool) else writes.update
    columns = frozenset(str(field.column) for field in model._meta.concrete_fields if field.name in names)
    return TableRights(writes.insert, writes.delete, None if writes.update is True else columns)
