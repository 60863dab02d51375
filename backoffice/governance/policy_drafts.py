"""The draft of the next version of the approval policies, in the session of the person who edits it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import Http404, HttpRequest
from pydantic import ValidationError

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.operations.kinds.approval_policy import ApprovalPolicyKind
from backoffice.operations.models.operations import Operation
from backoffice.operations.selectors import NEWEST_FIRST, visible_operations
from backoffice.operations.states import Status
from backoffice.policies.document import PolicyDocument
from backoffice.policies.models import AlteredPolicyError, PolicyInEffect, policy_in_effect
from backoffice.policies.people import with_current_names
from backoffice.policies.sentences import Difference, compare

_DRAFT = "policy_draft"


@dataclass(frozen=True)
class PolicyDraft:
    """The document, and the number of the version that it replaces, 0 for none."""

    replaces: int
    document: PolicyDocument


def policy_or_404() -> PolicyInEffect:
    """The policy in effect, with the names that people and groups have now.

    Raises Http404 if it was altered, which the integrity checks and every refusal report.
    """
    try:
        policy = policy_in_effect()
    except AlteredPolicyError as exc:
        raise Http404 from exc
    return replace(policy, document=with_current_names(policy.document))


def read_draft(request: StaffRequest, policy: PolicyInEffect | None = None) -> PolicyDraft:
    """The draft: at first, the rules in effect; before the first version, in the time zone of the person.

    With the names that people and groups have now, so that a renamed group does not stop the next version. `policy` is
    `policy_or_404`, if it is read already. Raises Http404 as that does.
    """
    kept = request.session.get(_DRAFT)
    if kept is not None:
        try:
            document = PolicyDocument.model_validate(kept["document"])
        except ValidationError:  # kept by another release
            del request.session[_DRAFT]
        else:
            return PolicyDraft(kept["replaces"], with_current_names(document))
    policy = policy or policy_or_404()
    if policy.number is None:
        return PolicyDraft(0, policy.document.model_copy(update={"time_zone": request.user.time_zone}))
    return PolicyDraft(policy.number, policy.document)


def keep_draft(request: StaffRequest, draft: PolicyDraft, **changes: Any) -> None:
    """Keep the draft with these members of the document changed."""
    document = draft.document.model_copy(update=changes)
    request.session[_DRAFT] = {"replaces": draft.replaces, "document": document.stored()}


def digest_of_part(document: PolicyDocument, part: str) -> str:
    """The digest of one member of the draft, which a page carries so that it does not overwrite what was changed since
    in another window.
    """
    return PolicyDocument().model_copy(update={part: getattr(document, part)}).digest


def own_changes(request: StaffRequest, policy: PolicyInEffect) -> int | None:
    """How many rules of the kept draft differ from those in effect; None if there is no draft."""
    if _DRAFT not in request.session:
        return None
    rules = compare(policy.document, read_draft(request, policy).document)
    return sum(one.difference != Difference.SAME for one in rules)


def has_draft(request: HttpRequest) -> bool:
    """Whether this session has begun a version, without reading it."""
    return _DRAFT in request.session


def drop_draft(request: StaffRequest) -> None:
    request.session.pop(_DRAFT, None)


@dataclass(frozen=True)
class WaitingVersion:
    """A version that waits for approval. It is outdated if it replaces another one than that in effect."""

    operation: Operation
    is_outdated: bool


@dataclass(frozen=True)
class WaitingVersions:
    """All versions that wait for approval, the newest first."""

    versions: Sequence[WaitingVersion]

    @property
    def approvable(self) -> int:
        """How many of them can be approved; only one of these takes effect."""
        return sum(not one.is_outdated for one in self.versions)


def waiting_versions(reader: User, policy: PolicyInEffect) -> WaitingVersions:
    """The versions that wait for approval while this policy is in effect. One query."""
    found = visible_operations(reader).filter(kind=ApprovalPolicyKind.name, status=Status.PENDING)
    return WaitingVersions(
        [
            WaitingVersion(operation, operation.payload.get("replaces") != (policy.number or 0))
            for operation in found.order_by(*NEWEST_FIRST)
        ]
    )
