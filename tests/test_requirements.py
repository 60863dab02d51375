"""The selection of tests for the second engine: all that use the database, directly or through a fixture."""

import pytest

from backoffice.accounts.models import User
from tests.requirements import OF_ANY_ENGINE, asks_for_the_database, depends_on_the_engine, opened_by
from tests.sandbox_process import ROOT


@pytest.mark.django_db
def test_a_test_with_the_mark_needs_the_database(request: pytest.FixtureRequest) -> None:
    assert asks_for_the_database(request.node)


def test_a_test_with_a_database_fixture_needs_the_database(
    request: pytest.FixtureRequest, preparer: User
) -> None:
    assert asks_for_the_database(request.node)


def test_other_tests_do_not_need_the_database(request: pytest.FixtureRequest) -> None:
    assert not asks_for_the_database(request.node)


@pytest.mark.django_db
@pytest.mark.parametrize("person", opened_by(("preparer", "approver"), on_both_engines="preparer"))
def test_one_column_of_an_access_matrix_runs_on_both_engines(
    request: pytest.FixtureRequest, person: str
) -> None:
    assert depends_on_the_engine(request.node) is (person == "preparer")


def test_every_file_and_folder_left_to_one_engine_exists() -> None:
    assert [path for path in OF_ANY_ENGINE if not (ROOT / path).exists()] == []
