"""The list of tables: complete, and what it declares exists."""

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import Model

from backoffice.core.database.writes import TableRights, rights_by_table
from backoffice.core.storage.retention import Keeping, TableRetention, declared_tables
from backoffice.retention.prune import due_rows
from backoffice.retention.tables import TABLES


def test_every_table_has_one_line() -> None:
    models = {model._meta.db_table for model in apps.get_models(include_auto_created=True)}
    own = {name for name in models if not name.startswith(("append_only", "sandbox_", "demo_"))}
    names = [table.name for table in TABLES]
    assert sorted(names) == sorted(own)


def test_the_list_is_known_below() -> None:
    assert declared_tables() == TABLES


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_a_line_is_complete(table: object) -> None:
    [line] = [one for one in TABLES if one is table]
    if line.keeping == Keeping.PRUNED:
        assert hasattr(settings, line.setting)
    assert bool(line.since) == (line.keeping in {Keeping.PRUNED, Keeping.EVIDENCE})
    assert bool(line.label) == (line.keeping == Keeping.PRUNED)
    assert bool(line.reason) == (line.keeping in {Keeping.BOUNDED, Keeping.RECORD})


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_only_declared_tables_lose_rows_with_a_pruned_one(table: object) -> None:
    [line] = [one for one in TABLES if one is table]
    if line.keeping != Keeping.PRUNED:
        assert str(due_rows.__name__) == "due_rows"
        return
    referring = {one.related_model for one in line.model._meta.related_objects}
    assert referring == set(line.cascades)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))
def test_the_role_that_runs_may_delete_what_is_pruned_and_no_evidence(table: TableRetention) -> None:
    if table.keeping == Keeping.PRUNED:
        deleted_with_it = [table.model, *table.cascades]
        assert [model for model in deleted_with_it if not rights_of(model).delete] == []
    if table.keeping == Keeping.EVIDENCE:
        assert not any(table.model in pruned.cascades for pruned in TABLES)
        assert table.kept_for is None


def rights_of(model: type[Model]) -> TableRights:
    return rights_by_table()[model._meta.db_table]
