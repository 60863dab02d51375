"""What one administrator does alone and at once: deactivate an account, end its sessions. Neither gives rights."""

from datetime import datetime

from django.db import transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.sessions import end_sessions_of
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.operations import policy
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.satisfiability import check_governance_stays_satisfiable, newly_unsatisfied
from backoffice.operations.kinds.staffing import Staffing, check_administrators, newly_without_approver
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE_GOVERNANCE
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import BEFORE_SENDING
from backoffice.policies.document import Level
from backoffice.policies.sentences import level_text


@transaction.atomic
def deactivate_person(user_id: int, *, actor: User, second_factor_at: datetime | None, reason: str) -> User:
    """Prevent the person from signing in, and end all sessions.

    Raises PermissionMissingError, AccountRestrictedError, SecondFactorStaleError, and OperationError for one's own
    account, for one that is deactivated already, if fewer than two active administrators would be left, or if no change
    of staff or policy could be approved any more under the policy in effect. People who only handle money can always be
    deactivated.
    """
    staff.lock_staff(user_id)
    _check_may_act(actor, second_factor_at)
    if user_id == actor.pk:
        raise OperationError(Refusal.OWN_DEACTIVATION)
    if not User.objects.get(pk=user_id).is_active:
        raise OperationError(Refusal.ALREADY_DEACTIVATED)
    before = Staffing.now()
    after = before.without_person(user_id)
    check_administrators(before, after)
    check_governance_stays_satisfiable(before, after)
    return staff.deactivate_staff(user_id, actor=actor, reason=reason)


def lost_approvals(user_id: int) -> list[str]:
    """What can no longer be approved once this person is deactivated: rules and preparers, in words."""
    before = Staffing.now()
    after = before.without_person(user_id)
    rules = [one.refusal for one in newly_unsatisfied(before, after)]
    texts = [
        gettext("Rule {number}: too few people are left for {level}.").format(
            number=rule["number"], level=level_text(Level.model_validate_json(rule["level"]))
        )
        for rule in rules
    ]
    if alone := newly_without_approver(before.enrolled_only(), after.enrolled_only()):
        people = ", ".join(alone)
        texts.append(
            gettext("Nobody is left to approve what these people prepare: {people}.").format(people=people)
        )
    return list(dict.fromkeys(texts))


def people_with_open_operations() -> QuerySet[User]:
    """All people, each with `stranded_operations`: how many could be neither approved nor sent after a deactivation."""
    theirs = Operation.objects.filter(preparer=OuterRef("pk"), status__in=BEFORE_SENDING)
    number = theirs.order_by().values("preparer").annotate(number=Count("pk")).values("number")
    return User.objects.annotate(stranded_operations=Coalesce(Subquery(number), 0))


@transaction.atomic
def end_sessions(user_id: int, *, actor: User, second_factor_at: datetime | None, reason: str) -> User:
    """End all sessions of the person, who can sign in again.

    Raises PermissionMissingError, AccountRestrictedError, SecondFactorStaleError.
    """
    staff.lock_staff(user_id)
    _check_may_act(actor, second_factor_at)
    person = User.objects.get(pk=user_id)
    ended = end_sessions_of(person)
    record(Action.STAFF_SESSIONS_ENDED, actor=actor, target=person, reason=reason, sessions_ended=ended)
    return person


def _check_may_act(actor: User, second_factor_at: datetime | None) -> None:
    policy.check_permission(actor, APPROVE_GOVERNANCE)
    policy.check_second_factor(second_factor_at)
