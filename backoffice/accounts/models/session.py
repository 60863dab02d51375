"""A session: one browser in which a person is signed in."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import Permission
from django.contrib.sessions.base_session import AbstractBaseSession, BaseSessionManager
from django.db import models
from django.db.models import Aggregate, CharField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Concat
from django.utils import timezone
from django.utils.crypto import salted_hmac

_SEPARATOR = ","


class _Joined(Aggregate):
    """Texts of many rows as one text with commas between; the same on both engines."""

    function = "GROUP_CONCAT"
    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(
            compiler,
            connection,
            function="STRING_AGG",
            template=f"%(function)s(%(expressions)s, '{_SEPARATOR}')",
        )


class StaffSessionManager(BaseSessionManager["StaffSession"]):
    """Sessions as the middleware and people ask for them."""

    def live(self) -> QuerySet["StaffSession"]:
        """Neither idle for too long nor older than a working day."""
        return self.filter(expire_date__gt=timezone.now())

    def live_with_person(self) -> QuerySet["StaffSession"]:
        """Each with its person, the authenticator that vouched for it, and what the person may do now.

        One query carries all that a request must know about who asks.
        """
        names = (
            Permission.objects.filter(group__user=OuterRef("user"))
            .order_by()
            .values("group__user")
            .annotate(names=_Joined(Concat("content_type__app_label", Value("."), "codename")))
            .values("names")
        )
        return self.live().select_related("user", "device").annotate(joined_permission_names=Subquery(names))


class StaffSession(AbstractBaseSession):
    """Written by `accounts.sessions.SessionStore`: these columns repeat what its data says."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="sessions"
    )
    device = models.ForeignKey(
        "accounts.AuthenticatorDevice", null=True, on_delete=models.CASCADE, related_name="sessions"
    )
    created_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    address = models.CharField(max_length=64, blank=True)
    user_agent = models.CharField(max_length=255, blank=True)

    objects: ClassVar[StaffSessionManager] = StaffSessionManager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"session of {self.user}" if self.user_id else "session of a stranger"

    def bring_permissions(self) -> None:
        """Hand the permission names that `live_with_person` brought along to the person."""
        joined = vars(self).get("joined_permission_names") or ""
        if self.user is not None:
            self.user.permission_names = frozenset(joined.split(_SEPARATOR)) - {""}

    @property
    def reference(self) -> str:
        """A name for this session that can be shown: the key itself would let anyone in who reads it."""
        return salted_hmac("accounts.session", self.session_key, algorithm="sha256").hexdigest()[:16]

    @property
    def browser(self) -> str:
        """The browser and the system in two words, as far as they say it themselves."""
        names = [_first(self.user_agent, _BROWSERS), _first(self.user_agent, _SYSTEMS)]
        return " on ".join(name for name in names if name) or "Unknown browser"


# In this order: Edge and Opera also call themselves Chrome, Chrome also calls itself Safari.
_BROWSERS = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS": "macOS",
    "Linux": "Linux",
}


def _first(text: str, names: dict[str, str]) -> str:
    return next((name for mark, name in names.items() if mark in text), "")
