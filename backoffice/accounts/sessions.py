"""Sessions in the database: their limits, their person, their second factor, and how they end.

A row is found by the hash of the session's key, which only the browser has: a copy of the database opens no session.
The session's data holds who is signed in and when the second factor was given. It is signed for its row: a copy in
another row is no session. The columns of the row (`StaffSession`) repeat it at every save, so that sessions can be
listed and ended by person. `StaffRequest` is the type of every request after sign-in.
"""

import hashlib
from datetime import datetime, timedelta
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group
from django.contrib.sessions.backends import db
from django.contrib.sessions.exceptions import SessionInterrupted
from django.db import transaction
from django.db.models import CharField, DateTimeField, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.functional import cached_property
from django_htmx.middleware import HtmxDetails

from backoffice.accounts.models import AuthenticatorDevice, StaffSession, User
from backoffice.accounts.restrictions import latest_restricting_changes, restriction_times
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core import clock
from backoffice.core.database.queries import Argument, CompiledQuery, JoinedTexts, composed_once

_DEVICE_KEY = "second_factor_device"
_CONFIRMED_KEY = "second_factor_at"
_ADDRESS_KEY = "address"
_USER_AGENT_KEY = "user_agent"
_OPENED_BY_LINK_KEY = "opened_by_setup_link"
_LAST_SEEN_INTERVAL = timedelta(minutes=1)


class SessionStore(db.SessionStore):
    """Loads the session, its person, authenticator and permissions in one query."""

    row: StaffSession | None = None

    @classmethod
    def get_model_class(cls) -> type[StaffSession]:
        return StaffSession

    @property
    def row_key(self) -> str | None:
        """The primary key of the session's row; None for a session that is not stored."""
        return None if self.session_key is None else _hash_of(self.session_key)

    @property
    def key_salt(self) -> str:
        """For the signature of the data, different for every row."""
        return f"{super().key_salt}:{self.row_key}"

    @property
    def person(self) -> User | None:
        """Who is signed in, if still valid: account active, password unchanged, session within its limits."""
        claimed = self.get(SESSION_KEY)
        user = self.row.user if self.row else None
        if user is None or str(user.pk) != claimed or not user.is_active:
            return None
        hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
        claimed_hash = self.get(HASH_SESSION_KEY, "")
        return user if any(constant_time_compare(claimed_hash, valid) for valid in hashes) else None

    @property
    def authenticator(self) -> AuthenticatorDevice | None:
        """The authenticator with which the second factor was given in this session.

        The session's data is signed, its columns are not: an authenticator counts only if both refer to it.
        """
        claimed = self.get(_DEVICE_KEY)
        device = self.row.device if self.row else None
        return device if device is not None and str(device.pk) == claimed else None

    @property
    def second_factor_at(self) -> datetime | None:
        """When the second factor was last given in this session."""
        return datetime.fromisoformat(self[_CONFIRMED_KEY]) if self.authenticator else None

    @cached_property
    def now(self) -> datetime:
        """The database's time, loaded with the session; the same for all forms of a page."""
        return clock.now() if self.row is None else clock.read_time_of(self.row)

    def begin(self, *, address: str, user_agent: str) -> None:
        """Store the address and browser of the session, for the list of sessions."""
        self[_ADDRESS_KEY], self[_USER_AGENT_KEY] = address[:64], user_agent[:255]

    def confirm_second_factor(self, device: AuthenticatorDevice) -> None:
        """Record that the second factor was given now. The first time, the session gets a new key."""
        if _DEVICE_KEY not in self:
            self.cycle_key()
        self.now = clock.now()
        self[_DEVICE_KEY], self[_CONFIRMED_KEY] = str(device.pk), self.now.isoformat()
        if self.row is not None:
            self.row.device = device

    def forget_second_factor(self) -> None:
        """Return to the state after the password."""
        self.pop(_DEVICE_KEY, None)
        self.pop(_CONFIRMED_KEY, None)
        if self.row is not None:
            self.row.device = None

    def allow_enrolment(self) -> None:
        """Record that a one-time link opened this session: a first authenticator may be set up in it."""
        self[_OPENED_BY_LINK_KEY] = True

    @property
    def allows_enrolment(self) -> bool:
        """Whether a one-time link opened this session, and no authenticator was set up in it since."""
        return self.get(_OPENED_BY_LINK_KEY) is True

    def end_enrolment(self) -> None:
        """Record that no further authenticator may be set up in this session: the one of its link is confirmed."""
        self.pop(_OPENED_BY_LINK_KEY, None)

    def record_use(self) -> None:
        """Extend the idle limit. Written at most once a minute, to avoid a write at each request."""
        now = timezone.now()
        if self.row is None or now - self.row.last_seen_at < _LAST_SEEN_INTERVAL:
            return
        StaffSession.objects.filter(pk=self.row.pk).update(
            last_seen_at=now, expire_date=_ends_at(self.row.created_at, now)
        )

    def get_expire_at_browser_close(self) -> bool:
        """Always: the limits of the session are stored here, not in the cookie."""
        return True

    def exists(self, session_key: str) -> bool:
        return super().exists(_hash_of(session_key))

    def delete(self, session_key: str | None = None) -> None:
        key = self.session_key if session_key is None else session_key
        if key is not None:
            super().delete(_hash_of(key))

    def flush(self) -> None:
        super().flush()
        self.row = None

    def create_model_instance(self, data: dict[str, Any]) -> StaffSession:
        row = cast(StaffSession, super().create_model_instance(data))
        row.session_key = _hash_of(row.session_key)
        row.last_seen_at = timezone.now()
        row.created_at = self.row.created_at if self.row else row.last_seen_at
        row.expire_date = _ends_at(row.created_at, row.last_seen_at)
        row.user_id, row.device_id = data.get(SESSION_KEY), data.get(_DEVICE_KEY)
        row.address, row.user_agent = data.get(_ADDRESS_KEY, ""), data.get(_USER_AGENT_KEY, "")
        return row

    def _get_session_from_db(self) -> StaffSession | None:
        found = _live_with_person(restriction_times(), clock.reads_database())
        self.row = found.first(key=self.row_key, now=timezone.now())
        if self.row is None:
            self._session_key = None
        else:
            self.row.load_rights()
        return self.row


@composed_once
def _live_with_person(_times: tuple[timedelta, ...], _reads_database: bool) -> CompiledQuery[StaffSession]:
    """The live session of a key with the person, the authenticator of the second factor, the person's roles, and what
    restricts the person: one query for everything that a request needs of its user.
    """
    roles: QuerySet[Group] = Group.objects.filter(user=OuterRef("user"))
    names = roles.order_by().values("user").annotate(names=JoinedTexts("name")).values("names")
    sessions = StaffSession.objects.select_related("user", "device").annotate(
        joined_roles=Subquery(names), **latest_restricting_changes("user")
    )
    found = sessions.filter(pk=Argument("key", CharField()), expire_date__gt=Argument("now", DateTimeField()))
    return CompiledQuery(clock.with_read_time(found))


def _hash_of(session_key: str) -> str:
    """The hash of a key, in the length of Django's column. Keys have 165 random bits, so it needs no salt."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:40]


def _ends_at(began: datetime, last_used: datetime) -> datetime:
    """Fifteen minutes after the last use, but at most twelve hours after sign-in."""
    idle = timedelta(seconds=settings.SESSION_IDLE_SECONDS)
    absolute = timedelta(seconds=settings.SESSION_ABSOLUTE_SECONDS)
    return min(last_used + idle, began + absolute)


class StaffRequest(HttpRequest):
    """A request of a person who is signed in, guaranteed by the middleware."""

    user: User
    session: SessionStore
    htmx: HtmxDetails


def check_not_ended(request: StaffRequest) -> None:
    """Call it after locking the person, before a change of how they sign in: the session may have been ended since it
    was read, for example by a deactivation or a password reset, which the change would undo.

    Raises SessionInterrupted, as Django does for such a session at the end of the request: status 400.
    """
    if not StaffSession.objects.filter(pk=request.session.row_key, user=request.user).exists():
        raise SessionInterrupted("The session was ended before the request completed")


def live_sessions_of(user: User) -> QuerySet[StaffSession]:
    """The person's live sessions, most recently used first."""
    return StaffSession.objects.live().filter(user=user).order_by("-last_seen_at")


@transaction.atomic
def end_session(user: User, reference: str) -> bool:
    """End one of the person's own sessions. False if it had ended already."""
    session = next(
        (session_row for session_row in live_sessions_of(user) if session_row.reference == reference), None
    )
    if session is None:
        return False
    session.delete()
    record(
        Action.SESSION_ENDED, actor=user, target=user, browser=session.browser, from_address=session.address
    )
    return True


@transaction.atomic
def end_other_sessions(request: StaffRequest) -> int:
    """End all sessions of the person except the current one; returns how many."""
    ended = delete_other_sessions(request)
    record(Action.SESSIONS_ENDED, actor=request.user, target=request.user, ended=ended)
    return ended


def end_sessions_of(user: User) -> int:
    """End every session of a person, within a change that has its own audit entry; returns how many."""
    return StaffSession.objects.filter(user=user).delete()[0]


def delete_other_sessions(request: StaffRequest) -> int:
    """Like `end_other_sessions`, within a change that has its own audit entry."""
    return StaffSession.objects.filter(user=request.user).exclude(pk=request.session.row_key).delete()[0]
