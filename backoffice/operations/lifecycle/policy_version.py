"""Put a version of the approval policies into effect, and refuse one that the people who exist cannot satisfy."""

from backoffice.accounts.groups import active_groups
from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit
from backoffice.operations.errors import PolicyAlteredError, PolicyNamesOutdatedError, PolicyOutdatedError
from backoffice.operations.kinds.approval_policy import ApprovalPolicyPayload
from backoffice.operations.kinds.satisfiability import check_satisfiable
from backoffice.operations.kinds.staffing import Staffing
from backoffice.operations.models.operations import Operation
from backoffice.policies.document import Named, PolicyDocument
from backoffice.policies.models import AlteredPolicyError, PolicyVersion, policy_in_effect

_VERSION_LOCK = "policy version"


def apply_policy(operation: Operation, payload: ApprovalPolicyPayload, actor: User) -> None:
    """Make this document the newest version, here and in the audit log, in the transaction of the last approval.

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
    audit.record(
        Action.POLICY_IN_EFFECT,
        actor=actor,
        target=version,
        number=version.number,
        digest=version.digest,
        operation=operation.reference,
    )


def check_replaces_newest(number: int) -> None:
    """Raises PolicyOutdatedError unless this version is in effect, 0 for none; PolicyAlteredError."""
    try:
        newest = policy_in_effect().number or 0
    except AlteredPolicyError as exc:
        raise PolicyAlteredError from exc
    if newest != number:
        raise PolicyOutdatedError


def check_policy(document: PolicyDocument, staffing: Staffing | None = None) -> None:
    """Raises PolicyNamesOutdatedError, or PolicyUnsatisfiableError with the first rule that cannot be satisfied.

    `staffing` is read unless it is given.
    """
    _check_names(document)
    check_satisfiable(document, staffing or Staffing.now())


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
