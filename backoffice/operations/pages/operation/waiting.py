"""Why an operation waits: the levels done and open, who can approve now, and for everybody else why not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import longest_restriction_hours
from backoffice.accounts.roles import Role, roles_with
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.web.formatting import exact_time, in_words, local_time
from backoffice.operations.allow_list import CoolingHold
from backoffice.operations.approval import requirements
from backoffice.operations.approval.approvers import Approvers, approvers_of
from backoffice.operations.approval.escalation import ADMINISTRATORS
from backoffice.operations.approval.progress import in_whose_right
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.registry import KINDS, approval_permission_for
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import people_of_rule, rule_sentence
from backoffice.operations.policy import has_preparer_lost_permission
from backoffice.operations.states import Status
from backoffice.policies.evaluator import Capacity, Hindrance, Person
from backoffice.policies.people import CurrentNames
from backoffice.policies.sentences import level_text

MAX_NAMES = 20


@dataclass(frozen=True)
class WaitingLevel:
    """A level in words, who has approved for it, and how many are missing."""

    text: str
    given: Sequence[str]
    missing: int


@dataclass(frozen=True)
class WaitingReason:
    """Why some people cannot approve now: the reason, and their names, at most `MAX_NAMES`."""

    reason: str
    names: Sequence[str]
    more: int


@dataclass(frozen=True)
class AblePerson:
    """Who can approve now: `Ada Obi`, or `Ada Obi for Chidi Eze`."""

    id: int
    name: str


@dataclass(frozen=True)
class Waiting:
    """What an operation waits for. `refusal` is why nobody can approve it at all; usually empty.

    `cooling` is the time before which its recipient cannot be paid, if that holds it. `rule` is the operation's rule in
    words, with the names that people and groups have now. `role` is the role of those who can approve it.
    """

    levels: Sequence[WaitingLevel]
    open_level: str
    missing: int
    able: Sequence[AblePerson]
    reasons: Sequence[WaitingReason]
    refusal: str = ""
    is_tightened: bool = False
    has_lost_approvals: bool = False
    escalated: str = ""
    cooling: CoolingHold | None = None
    rule: str = ""
    role: str = ""

    @property
    def cooling_until(self) -> datetime | None:
        return self.cooling.until if self.cooling else None

    @property
    def is_held(self) -> bool:
        """Whether only time lets it be sent, however many approve it."""
        return self.cooling is not None and not self.cooling.extra_approval

    @property
    def has_levels(self) -> bool:
        """Whether the levels are listed: there are several, or the one is not that of the operation's rule."""
        return len(self.levels) > 1 or self.is_tightened

    @property
    def people_missing(self) -> int:
        """How many more people than those in `able` the open level needs."""
        return max(next((level.missing for level in self.levels if level.missing), 0) - len(self.able), 0)

    @property
    def able_shown(self) -> Sequence[AblePerson]:
        """The first `MAX_NAMES` of those who can approve."""
        return self.able[:MAX_NAMES]

    @property
    def able_more(self) -> int:
        """How many more can approve than are shown."""
        return len(self.able) - len(self.able_shown)

    def may_approve(self, person: User) -> bool:
        return any(one.id == person.pk for one in self.able)


def required_of(operation: Operation) -> requirements.RequiredNow | OperationError | None:
    """What an operation that is not decided or not sent yet needs for that, or why it is refused; None for others."""
    is_sent = not isinstance(KINDS.get(operation.kind), LocalKind)
    if operation.status != Status.PENDING and not (operation.status == Status.APPROVED and is_sent):
        return None
    try:
        return requirements.required_now(operation)
    except OperationError as exc:
        return exc


def waiting_of(
    operation: Operation, required: requirements.RequiredNow | OperationError | None
) -> Waiting | None:
    """What a pending operation waits for, or an approved one that lacks approvals or is held by cooling; else None.

    `required` is that of `required_of`.
    """
    if required is None:
        return None
    if isinstance(required, OperationError):
        return Waiting([], "", 0, [], [], refusal=str(required))
    if operation.status == Status.PENDING and has_preparer_lost_permission(operation):
        return Waiting([], "", 0, [], [])  # it cannot be approved, and the panel says why
    is_whole = all(getattr(one, "still_entitled", True) for one in operation.approvals.all())
    if operation.status == Status.APPROVED and is_whole and required.levels == operation.required_levels:
        hold = required.hold
        return Waiting([], "", 0, [], [], cooling=hold) if hold else None
    return _described(operation, required)


def _described(operation: Operation, required: requirements.RequiredNow) -> Waiting | None:
    levels = required.levels
    found = approvers_of(operation, levels)
    if operation.status == Status.APPROVED and found.progress.is_complete:
        return None
    approved_by = {in_whose_right(one): one.approved_by for one in found.counted}
    waiting_levels = tuple(one.level for one in found.progress.levels)
    names = CurrentNames.of([*(level.of for level in waiting_levels), *people_of_rule(operation.rule)])
    texts = [level_text(level) for level in names.in_levels(waiting_levels)]
    shown = [
        WaitingLevel(text, [approved_by[pk] for pk in one.given], one.missing)
        for text, one in zip(texts, found.progress.levels, strict=True)
    ]
    return Waiting(
        shown,
        next((level.text for level in shown if level.missing), ""),
        found.progress.missing,
        [AblePerson(person.id, _acting(person, can)) for person, can in found.able],
        _reasons(found),
        is_tightened=levels != operation.required_levels,
        has_lost_approvals=len(found.counted) < len(operation.approvals.all()),
        cooling=required.hold,
        rule=in_words(lambda rule: rule_sentence(rule, names), operation.rule),
        role=", ".join(str(Role(role).label) for role in roles_with(approval_permission_for(operation.kind))),
    )


def _acting(person: Person, can: Capacity) -> str:
    if can.in_place_of is None:
        return person.name
    return gettext("{stand_in} for {person}").format(stand_in=person.name, person=can.in_place_of.name)


def _reasons(found: Approvers) -> list[WaitingReason]:
    """Those who cannot approve by their reasons; who is on leave with the stand-in."""
    people = {person.id: person.name for person, _ in found.capacities}
    leaves = {one.person_id: one for one in found.delegations}
    reasons: dict[Hindrance, list[str]] = {}
    for person, can in found.capacities:
        if can.hindrance is None:
            continue
        name, leave = person.name, leaves.get(person.id)
        if can.hindrance is Hindrance.ON_LEAVE and leave is not None:
            name = gettext("{person} (until {until}; stand-in: {stand_in})").format(
                person=name, until=local_time(leave.ends_at), stand_in=people.get(leave.stand_in_id, "")
            )
        reasons.setdefault(can.hindrance, []).append(name)
    hours = longest_restriction_hours()
    return [
        WaitingReason(
            str(reason.label).format(hours=hours),
            reasons[reason][:MAX_NAMES],
            max(len(reasons[reason]) - MAX_NAMES, 0),
        )
        for reason in Hindrance
        if reason in reasons
    ]


def with_escalation(waiting: Waiting | None, timeline: Iterable[Entry]) -> Waiting | None:
    """The same, saying to whom it was escalated last, and when."""
    found = [entry for entry in timeline if entry.action == Action.OPERATION_WAITING_ESCALATED]
    if waiting is None or not found:
        return waiting
    to = str(found[-1].detail_of("to") or "")
    shown = gettext("administrators") if to == ADMINISTRATORS else to
    text = gettext("Escalated to {people} on {time}.").format(people=shown, time=local_time(found[-1].at))
    return replace(waiting, escalated=text)


def waiting_title(waiting: Waiting) -> str:
    """The title above the reason of an approved operation that is not sent yet."""
    is_held = waiting.is_held and not waiting.open_level
    return gettext("Cannot be sent yet") if is_held else gettext("Needs more approvals")


def waiting_text(waiting: Waiting) -> str:
    """Why an approved operation is not sent yet."""
    if waiting.refusal:
        return waiting.refusal
    if waiting.cooling_until and not waiting.open_level:
        text = gettext("The recipient was added or changed recently, and can be paid from {time}.")
        return text.format(time=exact_time(waiting.cooling_until))
    if waiting.cooling_until:
        text = gettext(
            "The recipient was added or changed recently, and can be paid from {time}. With one more approval "
            "({level}) it can be sent at once."
        )
        return text.format(time=exact_time(waiting.cooling_until), level=waiting.open_level)
    if waiting.is_tightened:
        text = gettext("The approval policies were tightened after the approval. Now required: {level}.")
    else:
        text = gettext("Another person can approve instead. Still required: {level}.")
    return text.format(level=waiting.open_level)


def holder_text(operation: Operation) -> str:
    """What the bank says of the account, if that stops the payment until a person confirms the account; else empty."""
    changes = [one for one in operation.holder_changes.all() if one.confirmed_at is None]
    if not changes:
        return ""
    if changes[-1].name:
        found = gettext("The name at the bank now differs from the approved name.")
    else:
        found = gettext("The bank does not find this account.")
    return (
        f"{found} {gettext('The operation is not sent until a person who may send it confirms the account.')}"
    )
