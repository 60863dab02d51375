"""Put a version of the approval policies into effect, and refuse one that the people who exist cannot satisfy."""

from collections.abc import Iterator

from backoffice.accounts.groups import active_groups
from backoffice.accounts.models import User
from backoffice.accounts.roles import users_with_permission
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit
from backoffice.operations.errors import (
    PolicyAlteredError,
    PolicyNamesOutdatedError,
    PolicyOutdatedError,
    PolicyUnsatisfiableError,
)
from backoffice.operations.kinds.approval_policy import ApprovalPolicyPayload
from backoffice.operations.kinds.base import ChangeKind, LocalKind
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.registry import KINDS, AnyKind
from backoffice.operations.models.operations import Operation
from backoffice.policies.document import Conditions, Levels, Named, PolicyDocument, Rule
from backoffice.policies.evaluator import Person, can_be_satisfied, is_among
from backoffice.policies.models import AlteredPolicyError, PolicyVersion, policy_in_effect
from backoffice.policies.people import read_people

_VERSION_LOCK = "policy version"


def apply_policy(operation: Operation, payload: ApprovalPolicyPayload, _actor: User) -> None:
    """Make this document the newest version, in the transaction of the last approval.

    Raises PolicyOutdatedError if another version was put into effect since, and as `check_policy`.
    """
    lock_until_commit(_VERSION_LOCK)
    check_replaces_newest(payload.replaces)
    check_policy(payload.document)
    version = PolicyVersion(
        number=payload.replaces + 1,
        document=payload.document.stored(),
        digest=payload.document.digest,
        operation=operation.pk,
        in_effect_since=clock.now(),
    )
    version.make_seal()
    version.save(force_insert=True)


def check_replaces_newest(number: int) -> None:
    """Raises PolicyOutdatedError unless this version is in effect, 0 for none; PolicyAlteredError."""
    try:
        newest = policy_in_effect().number or 0
    except AlteredPolicyError as exc:
        raise PolicyAlteredError from exc
    if newest != number:
        raise PolicyOutdatedError


def check_policy(document: PolicyDocument) -> None:
    """Raises PolicyNamesOutdatedError or PolicyUnsatisfiableError with the first rule that cannot be satisfied.

    Whoever prepares: for each kind that a rule can decide, and each person who may prepare it, enough others who may
    approve it have to exist. Those whose rights are withheld for a day count.
    """
    _check_names(document)
    people = _People()
    for number, rule in enumerate(document.rules, start=1):
        for kind in _kinds_of(rule):
            if rule.levels:
                _check_rule(number, rule, kind, people)


class _People:
    """Who may approve and prepare with each permission, each read once."""

    def __init__(self) -> None:
        self._approvers: dict[str, list[Person]] = {}
        self._preparers: dict[str, set[int]] = {}
        self.checked: set[tuple[str, str, str]] = set()

    def approvers(self, permission: str) -> list[Person]:
        if permission not in self._approvers:
            found = read_people(permission)
            self._approvers[permission] = [one for one in found if one.is_active and one.may_approve]
        return self._approvers[permission]

    def preparers(self, permission: str) -> set[int]:
        if permission not in self._preparers:
            self._preparers[permission] = set(users_with_permission(permission).values_list("pk", flat=True))
        return self._preparers[permission]


def _check_rule(number: int, rule: Rule, kind: AnyKind, people: _People) -> None:
    """Each combination of levels and permissions once: most rules differ in other things."""
    preparer_text = rule.when.preparer.model_dump_json() if rule.when.preparer else ""
    key = (str(rule.levels) + preparer_text, kind.permission, kind.approval_permission)
    if key in people.checked:
        return
    people.checked.add(key)
    approvers = people.approvers(kind.approval_permission)
    for preparer in _preparers(rule, approvers, people.preparers(kind.permission)):
        others = [person for person in approvers if person != preparer]
        if not can_be_satisfied(rule.levels, others):
            level = next(
                level
                for place, level in enumerate(rule.levels)
                if not _prefix_is_satisfied(rule.levels, place, others)
            )
            raise PolicyUnsatisfiableError(number, kind.name, level, preparer.name if preparer else "")


def _prefix_is_satisfied(levels: Levels, place: int, people: list[Person]) -> bool:
    return can_be_satisfied(levels[: place + 1], people)


def _preparers(rule: Rule, approvers: list[Person], entitled: set[int]) -> Iterator[Person | None]:
    """Nobody of the approvers, and each of them who may prepare what the rule fits."""
    yield None
    for person in approvers:
        if person.id in entitled and (rule.when.preparer is None or is_among(person, rule.when.preparer)):
            yield person


def _kinds_of(rule: Rule) -> list[AnyKind]:
    """The kinds that the rule can decide: those it names, or all that can have what it asks for."""
    named = [kind for name, kind in KINDS.items() if not rule.when.kinds or name in rule.when.kinds]
    return [kind for kind in named if not _asks_for_money(rule.when) or _moves_money(kind)]


def _asks_for_money(when: Conditions) -> bool:
    return bool(when.currencies or when.recipient or when.on_list or when.networks)


def _moves_money(kind: AnyKind) -> bool:
    return kind.name == BatchKind.name or not isinstance(kind, ChangeKind | LocalKind)


def _check_names(document: PolicyDocument) -> None:
    """Whoever approves the document reads names: each has to be that of its id."""
    groups = dict(active_groups().values_list("pk", "name"))
    people = dict(User.objects.filter(is_active=True).values_list("pk", "full_name"))
    for number, rule in enumerate(document.rules, start=1):
        for of in filter(None, (rule.when.preparer, *(level.of for level in rule.levels))):
            wrong = [one for one in (of.group,) if one and not _has_name(one, groups)]
            wrong += [one for one in of.named if not _has_name(one, people)]
            if wrong:
                raise PolicyNamesOutdatedError(number, wrong[0].name)


def _has_name(one: Named, names: dict[int, str]) -> bool:
    return names.get(one.id) == one.name
