"""What the approval policies require of an operation: when it is prepared, and as long as it waits."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from backoffice.core.web.formatting import format_amount
from backoffice.operations import allow_list, errors
from backoffice.operations.descriptions import History, Subject, batch_of, describe, describe_with, subject_of
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import ApprovalRule, coded, people_of_rule, rule_sentence
from backoffice.operations.selectors import current_policy
from backoffice.policies.document import LAST_RULE, Level, Levels, RecipientRequirements, approvals_in
from backoffice.policies.evaluator import Decision, DescribedOperation, Evaluator, stricter, strictest
from backoffice.policies.models import PolicyInEffect
from backoffice.policies.people import CurrentNames


@dataclass(frozen=True)
class ApprovalRequirement:
    """Whose approvals are needed, in which order; the rule that requires them, as stored; and its version, None for
    the rules of `SECOND_APPROVAL_ABOVE`. `refusal` is why a policy refuses it; usually empty.
    """

    levels: Levels
    rule: dict[str, Any]
    version: int | None
    refusal: str = ""

    @property
    def approvals(self) -> int:
        """How many approvals are needed together."""
        return approvals_in(self.levels)

    @property
    def sentence(self) -> str:
        """The rule in words, with the names that people and groups have now."""
        return rule_sentence(self.rule, CurrentNames.of(people_of_rule(self.rule)))


def approval_requirement(subject: Subject) -> ApprovalRequirement:
    """What the policy in effect requires of this content. Raises PolicyAlteredError."""
    return requirement_under(current_policy(), subject)


def requirement_under(policy: PolicyInEffect, subject: Subject) -> ApprovalRequirement:
    """What this policy requires: of all amounts, the strictest."""
    return _requirement(policy, describe(policy.document, subject))


def _requirement(policy: PolicyInEffect, operations: Sequence[DescribedOperation]) -> ApprovalRequirement:
    decision = strictest(Evaluator(policy.document).decide(operation) for operation in operations)
    rule = decision.rule
    return ApprovalRequirement(
        rule.levels or LAST_RULE.levels,
        _stored_rule(policy, decision, operations),
        policy.number,
        rule.refuse,
    )


def _stored_rule(
    policy: PolicyInEffect, decision: Decision, operations: Sequence[DescribedOperation]
) -> dict[str, Any]:
    rule = decision.rule
    if policy.number is not None:
        is_last = decision.number > len(policy.document.rules)
        code = ApprovalRule.LAST_OF_POLICY if is_last else ApprovalRule.POLICY
        return {
            **coded(code, version=str(policy.number), number=str(decision.number)),
            "policy_rule": rule.model_dump(mode="json"),
            **({"time_zone": policy.document.time_zone} if rule.when.hours else {}),
        }
    band, currencies = rule.when.amount, rule.when.currencies
    if band and band.above is not None and currencies:
        limit = f"{currencies.codes[0]} {format_amount(band.above, currencies.codes[0])}"
        return dict(coded(ApprovalRule.TWO_ABOVE_LIMIT, limit=limit))
    if currencies:
        currency = next(one.currency for one in operations if one.currency not in {"", *currencies.codes})
        return dict(coded(ApprovalRule.TWO_WITHOUT_LIMIT, currency=currency))
    return dict(coded(ApprovalRule.ONE_APPROVER))


def check_not_refused(requirement: ApprovalRequirement) -> None:
    """Raises PolicyRefusedError with the reason that the policy gives."""
    if requirement.refusal:
        raise errors.PolicyRefusedError(requirement.refusal)


@dataclass(frozen=True)
class RequiredNow:
    """What an operation needs to be sent: these levels, what is required of its recipient, and what holds it."""

    levels: Levels
    recipients: RecipientRequirements
    hold: allow_list.CoolingHold | None


def required_now(operation: Operation) -> RequiredNow:
    """The levels of its rules (`agreed_levels`), and one more approval while cooling holds its recipient and an
    approval may take the place of the time. Raises as `agreed_levels`, and RecipientAlteredError.
    """
    policy = current_policy()
    levels = agreed_levels(operation, policy)
    recipients = allow_list.requirements_for(policy, operation)
    hold = allow_list.cooling_hold(operation, recipients)
    if hold is not None and hold.extra_approval:
        levels = (*levels, Level(needed=1))
    return RequiredNow(levels, recipients, hold)


def required_levels(operation: Operation) -> Levels:
    """The levels of `required_now`. Raises as it does."""
    return required_now(operation).levels


def agreed_levels(operation: Operation, policy: PolicyInEffect | None = None) -> Levels:
    """The levels under which it was prepared, and what the version in effect requires beyond them. `policy` is that
    version, read unless it is given.

    So a loosened policy does not apply to what waits, and a tightened one does. Raises PolicyRefusedError,
    PolicyAlteredError if versions are missing or altered, and ContentUnreadableError.
    """
    levels = operation.required_levels
    policy = policy or current_policy()
    if policy.number == operation.policy_version:
        return levels
    if (policy.number or 0) < (operation.policy_version or 0):
        raise errors.PolicyAlteredError
    requirement = requirement_under(policy, subject_of(operation))
    check_not_refused(requirement)
    batch = batch_of(operation)
    if batch is not None:
        of_batch = _requirement_of_batch(batch, policy)
        check_not_refused(of_batch)
        requirement = replace(requirement, levels=stricter(requirement.levels, of_batch.levels))
    return stricter(levels, requirement.levels)


def levels_of_many(operations: Collection[Operation]) -> dict[UUID, Levels]:
    """As `agreed_levels`, for a page with many, in few queries; without those for which that raises an error.

    Needs `preparer`.
    """
    try:
        policy = current_policy()
    except errors.PolicyAlteredError:
        return {}
    levels = levels_as_prepared(one for one in operations if one.policy_version == policy.number)
    older = [one for one in operations if one.policy_version != policy.number]
    return levels | (remembered_levels(older, policy.number or 0, policy) if older else {})


def levels_as_prepared(operations: Iterable[Operation]) -> dict[UUID, Levels]:
    """The levels under which each of these was prepared, for lists; without those that cannot be read."""
    levels = {}
    for operation in operations:
        with suppress(errors.ContentUnreadableError):
            levels[operation.pk] = operation.required_levels
    return levels


def remembered_levels(
    operations: Collection[Operation], version: int, policy: PolicyInEffect | None = None
) -> dict[UUID, Levels]:
    """The levels of operations that were prepared under earlier versions, for lists; without those that cannot be
    approved at all.

    What this version requires of an operation never changes, so a process evaluates it once. No approval and no
    sending depends on it.
    """
    unknown = [one for one in operations if (one.pk, version) not in _remembered]
    if len(_remembered) > _REMEMBERED_AT_MOST:
        _remembered.clear()
        unknown = list(operations)
    try:
        policy = policy or (current_policy() if unknown else None)
    except errors.PolicyAlteredError:
        return {}
    if unknown and policy and (policy.number or 0) == version:
        _remembered.update(((one.pk, version), levels) for one, levels in _levels_of_many(unknown, policy))
    found = {one.pk: _remembered.get((one.pk, version)) for one in operations}
    return {pk: levels for pk, levels in found.items() if levels is not None}


_remembered: dict[tuple[UUID, int], Levels | None] = {}
_REMEMBERED_AT_MOST = 50_000


def _levels_of_many(
    operations: Collection[Operation], policy: PolicyInEffect
) -> Iterator[tuple[Operation, Levels | None]]:
    """As `agreed_levels`, with the history of all read at once; None for what cannot be approved."""
    subjects = {}
    for operation in operations:
        if operation.prepared_from_id is None and operation.kind != BatchKind.name:
            with suppress(errors.ContentUnreadableError):
                subjects[operation.pk] = subject_of(operation)
    history = History(policy.document, list(subjects.values()))
    for operation in operations:
        subject = subjects.get(operation.pk)
        try:
            if subject is None:  # a batch, a row of one, or a copy of another operation
                yield operation, agreed_levels(operation, policy)
                continue
            described = describe_with(subject, history)
            requirement = _requirement(policy, described)
            check_not_refused(requirement)
            yield operation, stricter(operation.required_levels, requirement.levels)
        except errors.OperationError:
            yield operation, None


def _requirement_of_batch(batch: Operation, policy: PolicyInEffect) -> ApprovalRequirement:
    """What the policy requires of the whole batch, decided once in a process for all of its rows."""
    key = (batch.pk, policy.number or 0, policy.document.digest)
    requirement = _of_batches.get(key)
    if requirement is None:
        requirement = requirement_under(policy, subject_of(batch))
        _of_batches.clear()
        _of_batches[key] = requirement  # which another thread may clear at once
    return requirement


_of_batches: dict[tuple[UUID, int, str], ApprovalRequirement] = {}
