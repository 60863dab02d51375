"""Which role may do what. Rights come from roles alone; the authentication backend ignores every other source.

A role is a Django group of the same name. After every `migrate` the groups are brought in line with the table, so
a permission that leaves the table is taken from the people too.
"""

from typing import Any

from django.apps import AppConfig
from django.apps import apps as installed_apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Model

from backoffice.accounts.models import User

_VIEW_PERMISSIONS = {"operations.view_operation", "ledger.view_balance", "ledger.view_transaction"}
_OVERSIGHT_PERMISSIONS = {"operations.resolve_operation", "operations.pause_sending"}


class Role(models.TextChoices):
    """What a member of staff comes to do. One person may hold several."""

    PREPARER = "Preparer"
    APPROVER = "Approver"
    AUDITOR = "Auditor"
    ADMINISTRATOR = "Administrator"


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
        "operations.acknowledge_incident",
    },
}


def sync_role_permissions(
    app_config: AppConfig, using: str, apps: Any = installed_apps, **_kwargs: Any
) -> None:
    """Give each role exactly the permissions on this application that the table names.

    Runs once for each application after its migrations (`post_migrate`), because only then do its
    permissions exist.
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


class StaffBackend(ModelBackend):
    """Django's check of the password; permissions from roles alone.

    Every right has a role behind it that can be named, so permissions given to one person count for nothing.
    """

    def get_user_permissions(self, _user: AbstractBaseUser | AnonymousUser, _obj: Any = None) -> set[str]:
        return set()

    def get_group_permissions(self, user: Any, obj: Model | None = None) -> set[str]:
        if not isinstance(user, User) or not user.is_active or obj is not None:
            return set()
        return set(user.permission_names)

    def get_all_permissions(self, user: Any, obj: Model | None = None) -> set[str]:
        return self.get_group_permissions(user, obj)
