"""Who may sign in with a password, and what a person may do."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db.models import Model

from backoffice.accounts.models import User


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
