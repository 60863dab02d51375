"""The decision panel: what the state means for the person who looks, and what this person may do now."""

from dataclasses import dataclass

from backoffice.accounts.models import User
from backoffice.operations import permissions, policy
from backoffice.operations.kinds import KINDS
from backoffice.operations.models import Operation
from backoffice.operations.progress import approvals_missing, is_released, last_attempt
from backoffice.operations.states import AWAITING_THE_SERVICE, CLOSED, Outcome, Status


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


_WORDS: dict[Status, tuple[str, str]] = {
    Status.SENDING: ("Being sent", "The one request is on its way. This page shows the answer by itself."),
    Status.PROCESSING: (
        "The service works on it",
        "The service accepted it. Its own list of transactions will say how it ended; this page shows it by itself.",
    ),
    Status.UNKNOWN: (
        "The outcome is not known",
        "No readable answer came back, so it may have been executed or not. Countersign never sends it again by "
        "itself; it keeps reading the service's list of transactions until the outcome is clear.",
    ),
    Status.REVIEW: (
        "People must look at it",
        "The service's list did not settle what became of it. Do not pay the same again: ask the service, and "
        "compare its statement with the attempt below.",
    ),
    Status.SUCCEEDED: ("Succeeded", "The service's own list of transactions confirms it."),
    Status.FAILED: (
        "Failed",
        "It was not executed, or the service took it back. Nothing will be sent again by itself.",
    ),
    Status.REJECTED: ("Rejected", "It was not countersigned. Nothing was sent."),
    Status.EXPIRED: ("Expired", "Its time ran out before it was sent. Nothing was sent."),
    Status.CANCELLED: ("Cancelled", "It was taken back by the person who prepared it. Nothing was sent."),
}


def takes_decisions(person: User) -> bool:
    """Whether operations can wait for this person at all."""
    return person.has_perm(permissions.APPROVE) or person.has_perm(permissions.RELEASE)


def panel_for(person: User, operation: Operation) -> Panel:
    """What this person sees beside the facts. Reads nothing that `selectors.operation_page` has not fetched."""
    title, text = _words(person, operation)
    decides = policy.may_decide(person, operation) and not has_signed(person, operation)
    return Panel(
        title,
        text,
        may_decide=decides,
        may_send_at_once=decides and _is_last(operation) and person.has_perm(permissions.RELEASE),
        may_release=policy.may_release(person, operation) and not is_released(operation),
        may_cancel=policy.may_cancel(person, operation),
        may_check=may_check(person, operation),
        may_repeat=operation.status in CLOSED and person.has_perm(permissions.PREPARE),
    )


def may_check(person: User, operation: Operation) -> bool:
    """Whether this person may have the service's list read now. Reading moves no money, but it may close the row."""
    works_with_it = any(
        person.has_perm(name) for name in (permissions.PREPARE, permissions.APPROVE, permissions.RELEASE)
    )
    return works_with_it and operation.status in AWAITING_THE_SERVICE


def has_signed(person: User, operation: Operation) -> bool:
    """Whether this person has countersigned already."""
    return any(approval.approver_id == person.pk for approval in operation.approvals.all())


def came_back(operation: Operation) -> str:
    """Why an approved operation is not sent although somebody tried; empty if nobody did."""
    attempt = last_attempt(operation)
    if operation.status != Status.APPROVED or attempt is None or is_released(operation):
        return ""
    reason = (
        "the service refused the token" if attempt.outcome == Outcome.TOKEN_REFUSED else "nothing left us"
    )
    return f"It was tried and not executed: {reason} ({attempt.answer}). It can be sent again."


def _is_last(operation: Operation) -> bool:
    return approvals_missing(operation) == 1 and KINDS[operation.kind].needs_token


def _words(person: User, operation: Operation) -> tuple[str, str]:
    status = Status(operation.status)
    if status == Status.PENDING:
        return _pending(person, operation)
    if status == Status.APPROVED:
        return _approved(person, operation)
    return _WORDS[status]


def _pending(person: User, operation: Operation) -> tuple[str, str]:
    if person.pk == operation.maker_id:
        return (
            "Waiting for another person",
            f"You prepared this, so somebody else has to sign. {operation.rule}",
        )
    if has_signed(person, operation):
        return "You have countersigned", f"Another person is still needed. {operation.rule}"
    if policy.may_decide(person, operation):
        return "Your decision", operation.rule
    return "Waiting for a second person", operation.rule


def _approved(person: User, operation: Operation) -> tuple[str, str]:
    if is_released(operation):
        return "About to be sent", "The word to send is given; a worker takes it up within seconds."
    if policy.may_release(person, operation):
        return "Ready to be sent", "Everybody needed has countersigned. It leaves when you give the word."
    return (
        "Countersigned, not sent",
        "Somebody who may send, and who did not prepare it, has to give the word.",
    )
