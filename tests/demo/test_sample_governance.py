"""What the demo shows of team, policies and recipients: made by two people each, and nobody waits for it."""

from collections import Counter

import pytest
from pydantic import SecretStr

from backoffice.accounts.access_report import review_due_at
from backoffice.accounts.groups import groups_of
from backoffice.accounts.models import User
from backoffice.accounts.restrictions import restrictions_of
from backoffice.core import clock
from backoffice.demo.people import ensure_people
from backoffice.demo.sample_data import SampleOperations, new_sample_operations
from backoffice.demo.sample_governance import make_sample_governance
from backoffice.governance.team import team_members
from backoffice.operations.kinds.delegation import stand_ins_for
from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation
from backoffice.policies.models import policy_in_effect
from backoffice.recipients.register import newest_versions
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def history(sandbox: SandboxProcess) -> SampleOperations:
    ensure_people()
    made = new_sample_operations(lambda: SecretStr(sandbox.totp()))
    make_sample_governance(made)
    return made


def test_it_has_groups_policies_recipients_and_a_review(history: SampleOperations) -> None:
    people = User.objects.in_bulk()
    members = {people[pk].first_name: list(found.values()) for pk, found in groups_of(people).items()}
    assert members == {
        "Amara": ["Directors", "Payment desk"],
        "Femi": ["Directors"],
        "Chidi": ["Payment desk", "Treasury"],
        "Ngozi": ["Treasury"],
    }
    assert (policy_in_effect().number, len(policy_in_effect().document.rules)) == (1, 4)
    assert Counter(newest_versions().values_list("state", flat=True)) == {"approved": 9, "suggested": 1}
    due = review_due_at()
    assert due is not None
    assert due > clock.now()
    waiting = Operation.objects.filter(status=Status.PENDING).values_list("kind", flat=True)
    assert sorted(waiting) == ["approval_policy", "recipient", "staff_change"]


def test_approvers_can_stand_in_for_each_other_and_one_delegation_begins_later(
    history: SampleOperations,
) -> None:
    approvers = [history.people[name] for name in ("Amara", "Chidi")]
    assert [len(stand_ins_for(one)) for one in approvers] == [1, 1]
    delegation = Delegation.objects.get()
    assert str(delegation) == "Amara Okafor for Chidi Nwosu"
    assert delegation.starts_at > clock.now()


def test_nobody_waits_for_new_rights(history: SampleOperations) -> None:
    assert [person for person in team_members(clock.now()) if restrictions_of(vars(person))] == []


def test_a_large_withdrawal_waits_for_its_second_level(history: SampleOperations) -> None:
    history.make_half_approved()
    operation = Operation.objects.get(kind="withdrawal")
    assert operation.status == Status.PENDING
    assert "1 of Treasury, then 1 of Directors" in operation.rule_sentence


def test_it_violates_no_integrity_check(history: SampleOperations) -> None:
    assert inspect(full=True).violations == {}
