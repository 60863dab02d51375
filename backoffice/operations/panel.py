"""The decision panel: what the state means for the person who looks, and what this person may do now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.display import local_time
from backoffice.operations import permissions, policy
from backoffice.operations.errors import OperationAction, Refusal, sentence
from backoffice.operations.kinds import KINDS, permission_for
from backoffice.operations.kinds.resolution_case import may_be_settled
from backoffice.operations.models import Operation
from backoffice.operations.pause import Pause, pause_on_pages
from backoffice.operations.progress import (
    approvals_missing,
    has_lost_a_signature,
    has_lost_its_maker,
    is_applied_here,
    is_released,
    last_attempt,
    needs_token,
)
from backoffice.operations.states import AWAITING_THE_SERVICE, Outcome, Status
from backoffice.operations.turns import Turn


@dataclass(frozen=True)
class Panel:
    """A title, a sentence, and the controls that are shown. The services check every right again."""

    title: str
    text: str
    may_decide: bool = False
    may_send_at_once: bool = False
    may_release: bool = False
    may_cancel: bool = False
    may_check: bool = False
    may_repeat: bool = False
    may_settle: bool = False
    is_applied_here: bool = False


_APPLIED = ("Applied", "It was applied here with the last countersignature. Nothing was sent.")
_WORDS: dict[Status, tuple[str, str]] = {
    Status.SENDING: ("Being sent", "The one request is on its way. This page shows the answer by itself."),
    Status.PROCESSING: (
        "The service works on it",
        "The service accepted it. What it shows itself will say how it ended; this page shows it by itself.",
    ),
    Status.UNKNOWN: (
        "The outcome is not known",
        "No readable answer came back, so it may have been executed or not. Countersign never sends it again by "
        "itself; it keeps reading what the service shows until the outcome is clear.",
    ),
    Status.REVIEW: (
        "People must look at it",
        "The service's list did not settle what became of it. The same is not paid again before two people have said "
        "what became of this one: ask the service, and compare its statement with the evidence.",
    ),
    Status.SUCCEEDED: ("Succeeded", "The service itself confirms it."),
    Status.FAILED: (
        "Failed",
        "It was not executed, or the service took it back. Nothing will be sent again by itself.",
    ),
    Status.REJECTED: ("Rejected", "It was not countersigned. Nothing was sent."),
    Status.EXPIRED: ("Expired", "Its time ran out before it was sent. Nothing was sent."),
    Status.CANCELLED: ("Cancelled", "It was taken back by the person who prepared it. Nothing was sent."),
}


# A release that stands in the log last and is no longer there has run out, though nobody has swept it away yet.
_NOT_IN_TIME = {Action.OPERATION_RELEASED, Action.OPERATION_RELEASE_LAPSED}
_SOMEBODY_ELSE = "Somebody who may send, and who did not prepare it, has to give the word."
_ANEW = "Whoever prepared it has to cancel it and prepare it again."


def takes_decisions(person: User) -> bool:
    """Whether operations can wait for this person at all."""
    return person.has_perm(permissions.APPROVE) or person.has_perm(permissions.RELEASE)


def panel_for(person: User, operation: Operation, turn: Turn | None) -> Panel:
    """What this person sees beside the facts. Reads nothing that `selectors.operation_page` has not fetched."""
    title, text = _words(person, operation, turn)
    decides = policy.may_decide(person, operation) and not has_signed(person, operation)
    return Panel(
        title,
        text,
        may_decide=decides,
        may_send_at_once=decides
        and _is_last(operation)
        and person.has_perm(permissions.RELEASE)
        and not is_applied_here(operation)
        and not _sends_in_vain(operation, turn),
        may_release=_may_release(person, operation, turn),
        may_cancel=policy.may_cancel(person, operation),
        may_check=works_on_operations(person) and operation.status in AWAITING_THE_SERVICE,
        may_repeat=_may_repeat(person, operation),
        may_settle=_may_be_settled(operation) and person.has_perm(permissions.RESOLVE),
        is_applied_here=is_applied_here(operation),
    )


def _may_be_settled(operation: Operation) -> bool:
    attempts = [attempt for attempt in operation.attempts.all() if attempt.closed_at is None]
    return any(may_be_settled(operation, attempt) for attempt in attempts)


def without_content(panel: Panel) -> Panel:
    """The same where nobody can see what would be signed or sent: no decision, no sending, no copy."""
    if panel.may_decide or panel.may_release:
        title, text = "Nothing can be decided", "Nobody can see what would be signed or sent."
        panel = replace(panel, title=title, text=text, may_decide=False, may_release=False)
    return replace(panel, may_send_at_once=False, may_repeat=False)


def works_on_operations(person: User) -> bool:
    """Whether operations are this person's work, and not only reading: who works on them may have the service asked."""
    return any(
        person.has_perm(name)
        for name in (permissions.PREPARE, permissions.PROPOSE, permissions.APPROVE, permissions.RELEASE)
    )


def has_signed(person: User, operation: Operation) -> bool:
    """Whether this person has countersigned already."""
    return any(approval.approver_id == person.pk for approval in operation.approvals.all())


def came_back(operation: Operation, timeline: Sequence[Entry], turn: Turn | None) -> str:
    """Why an approved operation is not sent although somebody gave the word, and what to do; empty if nobody did.

    The newest entry that can tell it does: the word may have been given more than once. Where a countersignature is
    lost, the panel itself says all there is to say.
    """
    if operation.status != Status.APPROVED or is_released(operation) or has_lost_a_signature(operation):
        return ""
    last = next((entry for entry in reversed(timeline) if _ends_a_release(entry)), None)
    if last is not None and last.action in _NOT_IN_TIME:
        return (
            "It was not sent in time: its turn did not come, the service could not be read, or no worker was free. "
            "Nothing was sent, and the token is destroyed."
            f"{_if_it_can_leave(turn, 'Give the word again, with a new token.')}"
        )
    if last is not None and last.action == Action.OPERATION_REFUSED:
        return _held_back(last.detail["refusal"])
    return _tried(operation, turn)


def _ends_a_release(entry: Entry) -> bool:
    is_last_look = entry.detail.get("attempted") == OperationAction.SEND
    return entry.action in {*_NOT_IN_TIME, Action.OPERATION_RETURNED} or (
        entry.action == Action.OPERATION_REFUSED and is_last_look
    )


def _held_back(refusal: dict[str, str]) -> str:
    if refusal["code"] == Refusal.NOT_ALLOWED:
        return "Held back before it was sent: whoever gave the word may no longer send. Somebody else has to give it."
    return f"Held back before it was sent. {sentence(refusal)} {_ANEW}"


def _if_it_can_leave(turn: Turn | None, advice: str) -> str:
    """What to do, unless the panel says that it cannot leave now."""
    return "" if pause_on_pages() or _holder(turn) else f" {advice}"


def _tried(operation: Operation, turn: Turn | None) -> str:
    attempt = last_attempt(operation)
    if attempt is None:
        return ""
    reason = (
        "the service refused the token" if attempt.outcome == Outcome.TOKEN_REFUSED else "nothing left us"
    )
    again = _if_it_can_leave(turn, "It can be sent again.")
    return f"It was tried and not executed: {reason} ({attempt.answer}).{again}"


def _is_last(operation: Operation) -> bool:
    return approvals_missing(operation) == 1


def _may_repeat(person: User, operation: Operation) -> bool:
    """Whether a copy makes sense: not of what was applied here, which is done once and for all."""
    is_done_for_good = operation.status == Status.SUCCEEDED and is_applied_here(operation)
    return operation.is_closed and not is_done_for_good and person.has_perm(permission_for(operation.kind))


def _may_release(person: User, operation: Operation, turn: Turn | None) -> bool:
    stands_still = not is_released(operation) and not has_lost_a_signature(operation)
    return stands_still and policy.may_release(person, operation) and not _sends_in_vain(operation, turn)


def _sends_in_vain(operation: Operation, turn: Turn | None) -> bool:
    """Whether the word to send is not asked for: nothing leaves, or its token would run out before its turn."""
    return pause_on_pages() is not None or (_holder(turn) is not None and needs_token(operation))


def _holder(turn: Turn | None) -> Operation | None:
    """The operation whose open outcome holds the balance."""
    return turn.held_by if turn else None


def _words(person: User, operation: Operation, turn: Turn | None) -> tuple[str, str]:
    status = Status(operation.status)
    if status == Status.PENDING:
        return _pending(person, operation)
    if status == Status.APPROVED:
        return _approved(person, operation, turn)
    if status == Status.SUCCEEDED and is_applied_here(operation):
        return _APPLIED
    if status == Status.SUCCEEDED and operation.kind in KINDS:
        return KINDS[operation.kind].done or _WORDS[status]
    return _WORDS[status]


def _pending(person: User, operation: Operation) -> tuple[str, str]:
    if person.pk == operation.maker_id:
        return (
            "Waiting for another person",
            f"You prepared this, so somebody else has to sign. {operation.rule}",
        )
    if has_signed(person, operation):
        return "You have countersigned", f"Another person is still needed. {operation.rule}"
    if has_lost_its_maker(operation):
        return "Not to be countersigned any more", str(Refusal.MAKER_NOT_ENTITLED.label)
    if policy.may_decide(person, operation):
        return "Your decision", operation.rule
    return "Waiting for a second person", operation.rule


def _approved(person: User, operation: Operation, turn: Turn | None) -> tuple[str, str]:
    if not is_released(operation) and has_lost_a_signature(operation):
        return "Countersigned, but not validly any more", _no_longer_valid(operation)
    pause = pause_on_pages()
    if pause is not None:
        return "Cannot leave now: sending is paused", _paused(operation, pause, turn)
    if is_released(operation):
        return _released(operation, turn)
    holder = _holder(turn)
    if turn is not None and holder is not None:
        title = f"Cannot leave now: {holder.reference} holds the {turn.balance} balance"
        return title, _held(person, operation, turn, holder)
    if policy.may_release(person, operation):
        return "Ready to be sent", "Everybody needed has countersigned. It leaves when you give the word."
    return "Countersigned, not sent", _SOMEBODY_ELSE


def _no_longer_valid(operation: Operation) -> str:
    if has_lost_its_maker(operation):
        return str(Refusal.MAKER_NOT_ENTITLED.label)
    return f"Somebody who countersigned is no longer entitled to, so this will not be sent. {_ANEW}"


def _released(operation: Operation, turn: Turn | None) -> tuple[str, str]:
    until, since = local_time(operation.release.expires_at), operation.release.blocked_since
    if turn is not None and not turn.is_now:
        return "Waits for its turn", f"{turn} The word to send is given, and stands until {until}."
    if since is not None:
        why = f"{operation.release.blocker_sentence} It has been so since {local_time(since)}, and nothing has left."
        return "Not sent yet", f"{why} It is tried again until the word to send runs out at {until}."
    return "About to be sent", "The word to send is given; a worker takes it up within seconds."


def _paused(operation: Operation, pause: Pause, turn: Turn | None) -> str:
    why = f"{pause.paused_by} paused it: {pause.reason.rstrip('.')}. Nothing leaves before two people let it go on."
    if is_released(operation):
        until = local_time(operation.release.expires_at)
        return (
            f"{why} The word to send is given, and stands until {until}; after that it has to be given again."
        )
    held = f" Besides: {turn}" if turn is not None and _holder(turn) else ""
    return f"{why} The word to send can be given then.{held}"


def _held(person: User, operation: Operation, turn: Turn, holder: Operation) -> str:
    if needs_token(operation):
        return f"{turn} The word to send can be given after that: a token given now would run out."
    if policy.may_release(person, operation):
        return (
            f"{turn} You may give the word now. It stands for {settings.RELEASE_LIFETIME_MINUTES} minutes, and counts "
            f"if {holder.reference} is settled by then."
        )
    return f"{turn} {_SOMEBODY_ELSE}"
