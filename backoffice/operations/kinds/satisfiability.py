"""Whether the people who exist can give what the rules of an approval policy require, whoever prepares."""

from collections.abc import Iterator

from backoffice.operations.errors import PolicyAlteredError, PolicyUnsatisfiableError
from backoffice.operations.kinds.base import KindSection
from backoffice.operations.kinds.registry import KINDS, AnyKind
from backoffice.operations.kinds.staffing import Staffing
from backoffice.operations.permissions import APPROVE_GOVERNANCE
from backoffice.operations.refusals.sentences import ANYBODY
from backoffice.policies.document import Conditions, PolicyDocument, Rule
from backoffice.policies.evaluator import Person, can_be_satisfied, is_among
from backoffice.policies.models import AlteredPolicyError, policy_in_effect
from backoffice.policies.people import with_current_names


def check_satisfiable(document: PolicyDocument, staffing: Staffing) -> None:
    """Raises PolicyUnsatisfiableError with the first rule that cannot be satisfied.

    For each kind that a rule can decide, and each person who may prepare it, enough others who may approve it have to
    exist. People whose rights are withheld for a day count.
    """
    for unsatisfied in _unsatisfied(document, staffing):
        raise unsatisfied


def groups_without_enrolled_people(document: PolicyDocument, staffing: Staffing) -> list[str]:
    """The names of groups that some level requires and in which nobody has an authenticator yet."""
    present = {group for person in staffing.enrolled for group in staffing.groups.get(person, ())}
    named = [level.of.group for rule in document.rules for level in rule.levels if level.of.group]
    return list(dict.fromkeys(group.name for group in named if group.id not in present))


def check_policy_stays_satisfiable(before: Staffing, after: Staffing) -> None:
    """Raises PolicyUnsatisfiableError if a change of people would leave the policy in effect unsatisfiable.

    Only for what the change causes, so a rule that already lacked people does not hide another one. The rules of the
    settings name no person, so they are not checked.
    """
    try:
        policy = policy_in_effect()
    except AlteredPolicyError as exc:
        raise PolicyAlteredError from exc
    if policy.number is not None:
        _check_causes_nothing(policy.document, before, after)


def check_governance_stays_satisfiable(before: Staffing, after: Staffing) -> None:
    """Raises PolicyUnsatisfiableError if a change of staff or policy could be approved before and not after.

    Counts only people with an authenticator. Under an altered policy nothing can be approved in any case.
    """
    try:
        document = policy_in_effect().document
    except AlteredPolicyError:
        return
    _check_causes_nothing(document, before.enrolled_only(), after.enrolled_only(), APPROVE_GOVERNANCE)


def _check_causes_nothing(
    document: PolicyDocument, before: Staffing, after: Staffing, approval_permission: str = ""
) -> None:
    """Raises the first PolicyUnsatisfiableError that there is after the change and was not before."""
    for unsatisfied in _caused(document, before, after, approval_permission):
        raise unsatisfied


def newly_unsatisfied(before: Staffing, after: Staffing) -> list[PolicyUnsatisfiableError]:
    """What the policy in effect lacks after a change of people and not before it, whatever is prepared.

    Counts only people with an authenticator; nothing under an altered policy.
    """
    try:
        document = policy_in_effect().document
    except AlteredPolicyError:
        return []
    return list(_caused(document, before.enrolled_only(), after.enrolled_only()))


def _caused(
    document: PolicyDocument, before: Staffing, after: Staffing, approval_permission: str = ""
) -> Iterator[PolicyUnsatisfiableError]:
    """What is lacking after the change and was not before, with the names that groups and people have now.

    A level for which there were too few people whoever prepares is no worse for another preparer.
    """
    document = with_current_names(document)
    known = [one.refusal for one in _unsatisfied(document, before, approval_permission)]
    for unsatisfied in _unsatisfied(document, after, approval_permission):
        whoever_prepares = {**unsatisfied.refusal, "preparer": ANYBODY}
        if unsatisfied.refusal not in known and whoever_prepares not in known:
            yield unsatisfied


def _unsatisfied(
    document: PolicyDocument, staffing: Staffing, approval_permission: str = ""
) -> Iterator[PolicyUnsatisfiableError]:
    """What each rule lacks, for all kinds or those approved with this permission."""
    checked: set[tuple[str, str, str]] = set()
    for number, rule in enumerate(document.rules, start=1):
        people = f"{rule.levels} {rule.when.preparer}"
        for kind in _kinds_of(rule) if rule.levels else []:
            combination = (people, kind.permission, kind.approval_permission)
            if combination not in checked and approval_permission in {"", kind.approval_permission}:
                yield from _unsatisfied_levels(number, rule, kind, staffing)
            checked.add(combination)


def _unsatisfied_levels(
    number: int, rule: Rule, kind: AnyKind, staffing: Staffing
) -> Iterator[PolicyUnsatisfiableError]:
    approvers = _people(staffing, kind.approval_permission)
    entitled = staffing.holders(kind.permission)
    for preparer in _preparers(rule, [person for person in approvers if person.id in entitled]):
        others = [person for person in approvers if person != preparer]
        for place, level in enumerate(rule.levels, start=1):
            if not can_be_satisfied(rule.levels[:place], others):
                yield PolicyUnsatisfiableError(number, kind.name, level, preparer.name if preparer else "")


def _people(staffing: Staffing, permission: str) -> list[Person]:
    return [
        Person(one, staffing.names[one], staffing.roles[one], staffing.groups[one])
        for one in sorted(staffing.holders(permission))
    ]


def _preparers(rule: Rule, approvers: list[Person]) -> Iterator[Person | None]:
    """None for a preparer who does not approve, and each approver who may prepare what the rule applies to."""
    yield None
    for person in approvers:
        if rule.when.preparer is None or is_among(person, rule.when.preparer):
            yield person


def _kinds_of(rule: Rule) -> list[AnyKind]:
    """The kinds that the rule can decide: those it names, or all that can have what it asks for."""
    named = [kind for name, kind in KINDS.items() if not rule.when.kinds or name in rule.when.kinds]
    return [kind for kind in named if not _asks_for_money(rule.when) or kind.section == KindSection.MONEY]


def _asks_for_money(when: Conditions) -> bool:
    return bool(when.currencies or when.recipient or when.on_list or when.networks)
