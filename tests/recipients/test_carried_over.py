"""The migration of bank accounts that one person saved in an earlier release, and the way back."""

from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.recipients.register import find_recipients
from tests.recipients import registered

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = [("operations", "0014_policy_versions_and_levels")]


@pytest.fixture
def latest() -> Iterator[None]:
    """Afterwards the database is as all migrations make it."""
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("operations"))


@pytest.mark.usefixtures("latest")
def test_saved_accounts_become_suggestions(preparer: User) -> None:
    executor = MigrationExecutor(connection)
    saved = executor.migrate(BEFORE).apps.get_model("operations", "SavedAccount")
    saved.objects.create(
        name="Rent",
        recipient_key="bank:044:0123456789",
        bank="Access Bank",
        account_name="ADA OBI",
        saved_by_id=preparer.pk,
        saved_at=timezone.now(),
    )
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes("operations"))
    [found] = find_recipients("rent")
    assert (found.state, found.number, found.alias, found.name) == ("suggested", 0, "Rent", "ADA OBI")
    assert (found.bank_code, found.account, found.proposed_by) == ("044", "0123456789", preparer)
    assert found.search_text == "ada obi\nrent\n0123456789"


@pytest.mark.usefixtures("latest")
def test_suggestions_and_approved_accounts_are_saved_again_on_the_way_back(
    preparer: User, approver: User
) -> None:
    registered.suggested(preparer)
    registered.many(preparer, approver, 1)
    saved = MigrationExecutor(connection).migrate(BEFORE).apps.get_model("operations", "SavedAccount")
    assert set(saved.objects.values_list("name", flat=True)) == {"Rent", "Supplier 000"}
