"""The roles, their permissions and who has them now. The authentication backend ignores permissions from any other
source.

A role is a Django group of the same name. Its permissions are those of `PERMISSIONS`. The database's tables of
permissions of groups and people are not read, so a permission that is added there has no effect. `WITHHELD` is what a
recent change of an account withholds from its person.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed_apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Exists, Model, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce
from django.utils.translation import gettext_lazy as _

from backoffice.accounts import restrictions
from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.restrictions import RESTRICTING, Restriction, RestrictionCause, restriction_times
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.database.queries import composed_once

_VIEW_PERMISSIONS = {"operations.view_operation", "ledger.view_balance", "ledger.view_transaction"}
_OVERSIGHT_PERMISSIONS = {"operations.resolve_operation", "operations.pause_payments"}


class Role(models.TextChoices):
    """The roles of staff. One person may have several."""

    PREPARER = "Preparer", _("Preparer")
    APPROVER = "Approver", _("Approver")
    AUDITOR = "Auditor", _("Auditor")
    ADMINISTRATOR = restrictions.ADMINISTRATOR, _("Administrator")


PERMISSIONS: dict[Role, set[str]] = {
    Role.PREPARER: {*_VIEW_PERMISSIONS, *_OVERSIGHT_PERMISSIONS, "operations.prepare_operation"},
    Role.APPROVER: {
        *_VIEW_PERMISSIONS,
        *_OVERSIGHT_PERMISSIONS,
        "operations.approve_operation",
        "operations.release_operation",
        "operations.acknowledge_incident",
    },
    Role.AUDITOR: {*_VIEW_PERMISSIONS, "audit.view_entry"},
    Role.ADMINISTRATOR: {
        *_VIEW_PERMISSIONS,
        *_OVERSIGHT_PERMISSIONS,
        "audit.view_entry",
        "accounts.view_user",
        "operations.propose_change",
        "operations.approve_governance_change",
        "operations.acknowledge_incident",
    },
}

_MONEY_DECISIONS = frozenset(
    {
        "operations.approve_operation",
        "operations.release_operation",
        "operations.resolve_operation",
    }
)
WITHHELD: dict[RestrictionCause, frozenset[str]] = {
    RestrictionCause.BREAK_GLASS: _MONEY_DECISIONS
    | {"operations.acknowledge_incident", "operations.approve_governance_change"},
    RestrictionCause.NEW_RIGHTS: _MONEY_DECISIONS,
    RestrictionCause.RECOVERED_ACCOUNT: frozenset({"operations.approve_governance_change"}),
}
"""What a person may not do while a change of the account is in effect, whatever the roles.

New rights withhold only decisions about money: the first administrators have to invite the others at once. A recovered
account has new rights as well.
"""


def permissions_of(roles: Iterable[str]) -> frozenset[str]:
    """The permissions of these roles, such as "operations.view_operation". A name that is no role gives none."""
    held = frozenset(roles)
    return frozenset(name for role, names in PERMISSIONS.items() if role in held for name in names)


def roles_with(permission: str) -> tuple[str, ...]:
    """The names of the roles that include this permission."""
    return tuple(str(role) for role, names in PERMISSIONS.items() if permission in names)


def sync_role_permissions(
    app_config: AppConfig, using: str, apps: Any = installed_apps, **_kwargs: Any
) -> None:
    """Create the groups of the roles, and set their permissions on this app to those of the table.

    Called for each app after its migrations (`post_migrate`), because its permissions do not exist before. Only release
    0.1.0 reads them: whoever goes back to it keeps every role as it is.
    """
    for name in ("Group", "Permission"):
        if not _is_installed(apps, name):
            return
    group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    of_this_app = permission_model.objects.using(using).filter(content_type__app_label=app_config.label)
    for role, names in PERMISSIONS.items():
        group, _ = group_model.objects.using(using).get_or_create(name=role.value)
        codenames = {name.partition(".")[2] for name in names if name.startswith(f"{app_config.label}.")}
        group.permissions.remove(*of_this_app.exclude(codename__in=codenames))
        group.permissions.add(*of_this_app.filter(codename__in=codenames))


def _is_installed(apps: Any, model: str) -> bool:
    """False while a migration stops before `auth` has its tables."""
    try:
        apps.get_model("auth", model)
    except LookupError:
        return False
    return True


def users_with_permission(permission: str) -> QuerySet[User]:
    """The active people whose roles include this permission, such as "operations.approve_operation".

    Without those from whom a recent change of the account withholds it.
    """
    return _users_with_permission(permission, roles_with(permission), restriction_times()).all()


@composed_once
def _users_with_permission(
    permission: str, roles: tuple[str, ...], _times: tuple[timedelta, ...]
) -> QuerySet[User]:
    found = User.objects.filter(groups__name__in=roles, is_active=True).distinct()
    for manager in RESTRICTING:
        if permission in WITHHELD[manager.cause]:
            found = found.exclude(Exists(manager.in_effect().filter(user=OuterRef("pk"))))
    return found


def without_reactivated_outside(people: QuerySet[User]) -> QuerySet[User]:
    """Those of these people whom the audit log does not show as deactivated, whatever the database says of them.

    Reads the entries about each: for one person at a decision or sign-in, and for everybody once a minute.
    """
    entries = Entry.objects.filter(
        target_type=User._meta.label_lower,
        target_id=Cast(OuterRef("pk"), TextField()),
        action__in=[Action.STAFF_DEACTIVATED, Action.STAFF_REACTIVATED],
    )
    newest = Coalesce(Subquery(entries.order_by("-position").values("action")[:1]), Value(""))
    return people.alias(newest_action=newest).exclude(newest_action=Action.STAFF_DEACTIVATED)


def enrolled_people() -> QuerySet[User]:
    """The active people with a confirmed authenticator. Only they can approve."""
    confirmed = AuthenticatorDevice.objects.filter(user=OuterRef("pk"), confirmed=True)
    return User.objects.filter(Exists(confirmed), is_active=True)


def people_not_set_up() -> QuerySet[User]:
    """The active people without a confirmed authenticator: they cannot sign in fully yet."""
    return User.objects.filter(is_active=True).exclude(pk__in=enrolled_people().order_by().values("pk"))


def administrators_not_set_up() -> QuerySet[User]:
    """The administrators among `people_not_set_up`, in the order of their accounts."""
    return people_not_set_up().filter(groups__name=Role.ADMINISTRATOR).order_by("pk")


def enrolled_administrators() -> QuerySet[User]:
    """The administrators among `enrolled_people`, also those from whom a change of the account withholds something."""
    return enrolled_people().filter(groups__name=Role.ADMINISTRATOR)


def restriction_on(user: User, permission: str) -> Restriction | None:
    """What withholds this permission longest from the person, of what is in effect; usually None."""
    withholding = [one for one in user.restrictions if permission in WITHHELD[one.cause]]
    return max(withholding, key=lambda one: one.until, default=None)


def may_now(person: User, permission: str) -> bool:
    """Whether a role includes the permission and no change of the account withholds it."""
    return person.has_perm(permission) and restriction_on(person, permission) is None


class StaffBackend(ModelBackend):
    """Django's password check; permissions from roles alone, not from a single account."""

    def user_can_authenticate(self, user: User | AnonymousUser | None) -> bool:
        """Not if the account was reactivated outside Countersign."""
        if not isinstance(user, User) or not super().user_can_authenticate(user):
            return False
        return without_reactivated_outside(User.objects.filter(pk=user.pk)).exists()

    def get_user_permissions(self, _user: AbstractBaseUser | AnonymousUser, _obj: Any = None) -> set[str]:
        return set()

    def get_group_permissions(self, user: Any, obj: Model | None = None) -> set[str]:
        if not isinstance(user, User) or not user.is_active or obj is not None:
            return set()
        return set(permissions_of(user.roles_held))

    def get_all_permissions(self, user: Any, obj: Model | None = None) -> set[str]:
        return self.get_group_permissions(user, obj)
