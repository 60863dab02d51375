"""A sender that dies between reading the name of an account's holder and the claim, and a name that changes."""

import pytest

from backoffice.core.models import CachedReadRow
from backoffice.ledger import accounts as ledger
from backoffice.operations.models.holds import HolderChange
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.states import Status
from tests.faults.harness import operations
from tests.faults.harness.figures import compare_with_provider
from tests.faults.harness.stage import FaultStage, statuses
from tests.recipients import registered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

NUMBER, BANK = "0123456789", "044"


def released(stage: FaultStage, name: str) -> Operation:
    """A withdrawal to a registered account, approved under this name and released, whose name must be read again."""
    account = registered.bank_account(number=NUMBER, name=name)
    registered.agreed(account, stage.preparer, stage.approver)
    paid = {"account_number": NUMBER, "bank_code": BANK, "account_name": name, "typed_name": name}
    operation = operations.approved("withdrawal", stage.preparer, stage.approver, **paid)
    operations.release(operation, stage.approver, stage.provider)
    CachedReadRow.objects.filter(key__startswith="holder:").delete()
    return operation


def test_a_sender_killed_after_the_name_was_read_is_replaced_and_sends_once(stage: FaultStage) -> None:
    operation = released(stage, ledger.holder_today(NUMBER, BANK).name)
    stage.strike("send.name_resolved", operation)
    assert (statuses([operation]), Attempt.objects.count()) == ({Status.APPROVED}, 0)
    assert stage.provider.ledger()["orders"] == []
    stage.sweep_until_settled([operation])
    assert statuses([operation]) == {Status.SUCCEEDED}
    compare_with_provider(stage.provider, "killed at send.name_resolved")


def test_a_name_that_changed_between_approval_and_sending_holds_it(stage: FaultStage) -> None:
    operation = released(stage, "SOMEBODY WHO HELD IT BEFORE")
    stage.enqueue(operation)
    assert (statuses([operation]), Release.objects.count()) == ({Status.APPROVED}, 0)
    assert HolderChange.objects.get().name == ledger.holder_today(NUMBER, BANK).name
    stage.enqueue(operation, operation)
    assert stage.provider.ledger()["orders"] == []
