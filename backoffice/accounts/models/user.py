"""A member of staff."""

from typing import Any
from zoneinfo import available_timezones

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import Permission, PermissionsMixin
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.functional import cached_property


def validate_time_zone(name: str) -> None:
    """Raises ValidationError unless the name is one of the IANA time zone database."""
    if name not in available_timezones():
        raise ValidationError("Choose a time zone from the list.")


class Theme(models.TextChoices):
    """How the pages are coloured."""

    AUTO = "auto", "As the device"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class UserManager(BaseUserManager["User"]):
    """Finds people by e-mail address, in whatever case it was typed."""

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())

    def get_locked(self, pk: int) -> "User":
        """The person, locked to the end of the transaction.

        Without the key: an audit entry that names the person, written meanwhile, only needs the row to stay.
        """
        return self.select_for_update(no_key=True).get(pk=pk)


class User(AbstractBaseUser, PermissionsMixin):
    """A person who signs in. The e-mail address is the user name and is stored in lower case.

    Rights come from roles alone: permissions given to one person directly and Django's superuser flag count for
    nothing, so every right has a role behind it that can be named.
    """

    email = models.EmailField("e-mail address", unique=True)
    full_name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    time_zone = models.CharField(max_length=64, default="Africa/Lagos", validators=[validate_time_zone])
    theme = models.CharField(max_length=5, choices=Theme, default=Theme.AUTO)
    recovery_codes_kept_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS = ["full_name"]

    class Meta:
        default_permissions = ("view",)
        ordering = ["full_name", "pk"]
        constraints = [
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_in_lower_case"),
        ]

    def __str__(self) -> str:
        return self.full_name

    @property
    def first_name(self) -> str:
        """The first word of the name, for a greeting."""
        return self.full_name.partition(" ")[0]

    @property
    def initials(self) -> str:
        """The first letters of the first and the last word of the name."""
        words = self.full_name.split()
        return "".join(word[0] for word in dict.fromkeys((words[0], words[-1]))).upper() if words else "?"

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Whether a role of this person allows it; always False for somebody who was deactivated."""
        return perm in self.get_all_permissions(obj)

    def has_module_perms(self, app_label: str) -> bool:
        """Whether a role of this person allows anything in this application."""
        return any(name.startswith(f"{app_label}.") for name in self.get_all_permissions())

    @cached_property
    def permission_names(self) -> frozenset[str]:
        """What this person's roles allow, such as "operations.view_operation".

        One query, unless the request's session brought the names along (`live_with_person`).
        """
        names = Permission.objects.filter(group__user=self).values_list("content_type__app_label", "codename")
        return frozenset(f"{app}.{codename}" for app, codename in names)
