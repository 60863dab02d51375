"""Staff accounts, groups, and what people sign in with: set-up links, authenticators, recovery codes and sessions. Also
access reviews, and counts of refused sign-ins. Changes of accounts, which restrict people, are in `restrictions`.
"""

import base64
import re
import secrets
import uuid
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import quote, urlencode
from zoneinfo import available_timezones

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.sessions.base_session import AbstractBaseSession, BaseSessionManager
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_otp.models import Device, ThrottlingMixin, TimestampMixin
from django_otp.oath import TOTP

from backoffice.accounts.restrictions import (
    Restriction,
    latest_restricting_changes,
    restrictions_of,
)
from backoffice.audit.canonical import canonical_time
from backoffice.core.database.queries import split_texts
from backoffice.core.database.writes import APPEND_ONLY, NEVER_DELETED
from backoffice.core.encryption import EncryptedRow, SealedRow


def validate_time_zone(name: str) -> None:
    """Raises ValidationError unless this is a name of the IANA time zone database."""
    if name not in available_timezones():
        raise ValidationError(gettext("Select a time zone from the list."))


class Theme(models.TextChoices):
    """Colour scheme of the pages."""

    AUTO = "auto", _("Same as device")
    LIGHT = "light", _("Light")
    DARK = "dark", _("Dark")


class Language(models.TextChoices):
    """Language of the pages. Each language is named in itself."""

    AUTO = "auto", _("Same as browser")
    ENGLISH = "en", "English"
    FRENCH = "fr", "Français"


class UserManager(BaseUserManager["User"]):
    """Finds people by email address, ignoring case."""

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email=(username or "").strip().lower())

    def get_locked(self, pk: int) -> "User":
        """The person, locked until the end of the transaction.

        `no_key`: an audit entry that refers to the person needs the row to exist only, and must not wait for
        this lock.
        """
        return self.select_for_update(no_key=True).get(pk=pk)


class User(AbstractBaseUser, PermissionsMixin, SealedRow):
    """A person who signs in. The email address is the user name, stored in lower case.

    Permissions come from roles alone: permissions assigned to one person and Django's superuser flag are
    ignored, so every permission can be traced to a role.

    The seal covers the password: one that was written into the database from outside is not accepted.
    """

    WRITES = NEVER_DELETED

    email = models.EmailField(_("email address"), unique=True)
    full_name = models.CharField(max_length=120)
    is_active = models.BooleanField(default=True)
    time_zone = models.CharField(max_length=64, default="Africa/Lagos", validators=[validate_time_zone])
    theme = models.CharField(max_length=5, choices=Theme, default=Theme.AUTO)
    language = models.CharField(max_length=5, choices=Language, default=Language.AUTO)
    recovery_codes_stored_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = UserManager()

    USERNAME_FIELD = "email"

    _has_unsealed_password = False

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
        """The first word of the name."""
        return self.full_name.partition(" ")[0]

    @property
    def initials(self) -> str:
        """The initials of the first and the last word of the name."""
        words = self.full_name.split()
        return "".join(word[0] for word in dict.fromkeys((words[0], words[-1]))).upper() if words else "?"

    def set_password(self, raw_password: str | None) -> None:
        super().set_password(raw_password)
        self._has_unsealed_password = True

    def set_unusable_password(self) -> None:
        super().set_unusable_password()
        self._has_unsealed_password = True

    def check_password(self, raw_password: str | None) -> bool:
        """Whether this is the password; False if it was not set by this program.

        The seal is verified first, because a match may store a new hash of the password, by the current hash function.
        """
        if self.is_genuine:
            return super().check_password(raw_password)
        User().set_password(raw_password)  # the answer must not take less time than for a wrong password
        return False

    def save(self, **kwargs: Any) -> None:
        """Store the row, with a new seal if it stores a password that was set since."""
        columns = kwargs.pop("update_fields", None)
        if self._has_unsealed_password and (columns is None or "password" in columns):
            if self.pk is None:  # the seal covers it
                super().save(**kwargs)
                columns, kwargs = ["password"], {}
            self.make_seal()
            self._has_unsealed_password = False
            columns = columns and {*columns, "seal"}
        super().save(update_fields=columns, **kwargs)

    def sealed_content(self) -> dict[str, object]:
        return {"password_of": self.pk, "password": self.password}

    @property
    def owner(self) -> str:
        return f"password of {self.email}"

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Whether a role of this person allows it; always False for a deactivated account."""
        return perm in self.get_all_permissions(obj)

    def has_module_perms(self, app_label: str) -> bool:
        """Whether a role of this person allows anything in this app."""
        return any(name.startswith(f"{app_label}.") for name in self.get_all_permissions())

    @cached_property
    def roles_held(self) -> frozenset[str]:
        """The names of this person's roles, whose permissions `roles` has.

        One query, unless the session's query has loaded them already (`sessions.SessionStore`).
        """
        return frozenset(self.groups.values_list("name", flat=True))

    @cached_property
    def restrictions(self) -> tuple[Restriction, ...]:
        """What keeps this person from deciding for now, whatever the roles; usually nothing.

        One query, unless the session's query has loaded it already (`sessions.SessionStore`).
        """
        found = User.objects.filter(pk=self.pk).annotate(**latest_restricting_changes("pk"))
        return restrictions_of(vars(found.get()))


_CODE_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"  # no I, L, O, U, 0, 1: they are misread or misheard


def _random_code(length: int) -> str:
    """`length` random characters, in groups of four."""
    letters = "".join(secrets.choice(_CODE_ALPHABET) for _ in range(length))
    return "-".join(letters[start : start + 4] for start in range(0, length, 4))


def _keyed_hashes(purpose: str, text: str) -> list[str]:
    """The hashes of this text with each valid key, the current key first."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [salted_hmac(purpose, text, secret=key, algorithm="sha256").hexdigest() for key in keys]


_START_CODE_LENGTH = 12  # 58 bits


class SetupLink(SealedRow):
    """The one-time link by which a person chooses a password, stored as a keyed hash.

    One row per person, so a new link ends the earlier one. The row is deleted when the link is used. The token
    has 256 random bits, so it needs no slow hash; see `RecoveryCode`.

    A link that two people agreed on is useless without its start code: the preparer of the operation can see the
    link, its approver the code, each once. So it takes two people to open the account, and one person who invites two
    accounts cannot use them both.

    The seal covers who opens which account with it, how, and until when, and who may see which half.
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="setup_link")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(editable=False)
    expires_at = models.DateTimeField(editable=False)
    operation = models.UUIDField(null=True, unique=True, editable=False)
    code_digest = models.CharField(max_length=64, blank=True, editable=False)
    link_for = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    link_shown_at = models.DateTimeField(null=True, editable=False)
    code_for = models.ForeignKey(User, on_delete=models.CASCADE, null=True, related_name="+")
    code_shown_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(operation__isnull=True, code_digest="")
                | (
                    Q(operation__isnull=False, link_for__isnull=False, code_for__isnull=False)
                    & ~Q(code_digest="")
                    & ~Q(link_for=F("code_for"))
                ),
                name="setup_link_of_two_people",
            ),
        ]

    def __str__(self) -> str:
        return f"set-up link of {self.user}"

    def sealed_content(self) -> dict[str, object]:
        return {
            "setup_link_of": self.user_id,
            "digest": self.digest,
            "code_digest": self.code_digest,
            "operation": self.operation and str(self.operation),
            "link_for": self.link_for_id,
            "code_for": self.code_for_id,
            "expires_at": canonical_time(self.expires_at),
        }

    @property
    def owner(self) -> str:
        return f"one-time link of {self.user.email}"

    @staticmethod
    def generate() -> str:
        """A new random token, as it is written in the link."""
        return secrets.token_urlsafe(32)

    @staticmethod
    def digests(token: str) -> list[str]:
        """The hashes of this token with each valid key, the current key first."""
        return _keyed_hashes("accounts.setup_link", token)

    @staticmethod
    def generate_code() -> str:
        """A new random start code in groups of four, such as "7KQ2-M4XB-Z9TD".

        It is dictated, so it is short. Without the link it is of no use; with it, each network address may try five
        codes in half an hour, of 2^58.
        """
        return _random_code(_START_CODE_LENGTH)

    @staticmethod
    def code_digests(code: str) -> list[str]:
        """The hashes of this start code with each valid key, the current key first."""
        letters = "".join(letter for letter in code.upper() if letter.isalnum())
        return _keyed_hashes("accounts.start_code", letters)

    def accepts_code(self, code: str) -> bool:
        """Whether this is the start code of the link, or the link needs none."""
        return not self.code_digest or self.code_digest in self.code_digests(code)


class StaffGroup(models.Model):
    """People whom approval policies name together, such as "Treasury". It gives no permission: roles do.

    Changed only by an operation that two administrators agreed on. A retired group has no members and stays on
    record; its name is free again.
    """

    name = models.CharField(max_length=60)
    created_at = models.DateTimeField(editable=False)
    retired_at = models.DateTimeField(null=True, editable=False)
    members = models.ManyToManyField(User, through="GroupMembership", related_name="staff_groups")

    class Meta:
        default_permissions = ()
        ordering = ("name", "pk")
        constraints = [
            models.UniqueConstraint(
                Lower("name"), condition=Q(retired_at__isnull=True), name="staff_group_name_once"
            ),
            models.CheckConstraint(condition=~Q(name=""), name="staff_group_has_a_name"),
        ]

    def __str__(self) -> str:
        return self.name


class GroupMembership(models.Model):
    """One person in one group now. The row is deleted when it ends; the audit log keeps the history."""

    group = models.ForeignKey(StaffGroup, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    since = models.DateTimeField(editable=False)
    operation = models.UUIDField(editable=False)  # the operation by which two people agreed on it

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["group", "user"], name="group_membership_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.group}"


STEP_SECONDS = 30
CODE_DIGITS = 6
_TOLERATED_STEPS = 1
_SEED_BYTES = 20  # the output length of SHA-1, as RFC 4226 recommends
_ISSUER = "Countersign"


class AuthenticatorDevice(EncryptedRow, SealedRow, TimestampMixin, ThrottlingMixin, Device):
    """A person's TOTP authenticator. At most one is confirmed; another may be in enrolment to replace it.

    A code is accepted once: `last_t` only increases, by compare-and-set, so of two requests with the same
    code one succeeds. Wrong codes delay further attempts by 1, 2, 4, 8 ... seconds. The delay holds up the
    attacker as well, so an attack locks the owner out for about as long as it lasted, not longer.

    The encryption binds the seed to the row, the seal the row to the person.
    """

    ENCRYPTED_FIELD = "encrypted_seed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="authenticators")
    name = models.CharField(max_length=64, default="Authenticator")
    encrypted_seed = models.BinaryField(editable=False)
    last_t = models.BigIntegerField(default=-1, editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "confirmed"], name="authenticator_once_per_state"),
        ]

    def __str__(self) -> str:
        return self.name

    def set_new_seed(self) -> None:
        """Generate a seed and encrypt it into the row, and seal the row for its person, without saving."""
        self.encrypt(secrets.token_hex(_SEED_BYTES))
        self.make_seal()

    def totp(self) -> TOTP:
        """The code generator at the current time."""
        seed = bytes.fromhex(self.decrypted())
        return TOTP(seed, step=STEP_SECONDS, digits=CODE_DIGITS)

    def verify_token(self, token: str) -> bool:
        """Whether this is an unused code of the current, previous or next time step. It is used up then."""
        if self.wait() or not self.is_genuine:
            return False
        if re.fullmatch(r"[0-9]{6}", token) and self._use(int(token)):
            return True
        self.record_failure()
        return False

    def wait(self) -> timedelta | None:
        """How long codes are still refused after wrong ones; None if they are not."""
        allowed, why = ThrottlingMixin.verify_is_allowed(self)
        return None if allowed else why["locked_until"] - timezone.now()

    def record_failure(self) -> None:
        """Count one wrong code, which lengthens the delay."""
        AuthenticatorDevice.objects.filter(pk=self.pk).update(
            throttling_failure_count=F("throttling_failure_count") + 1,
            throttling_failure_timestamp=timezone.now(),
        )

    def clear_failures(self) -> None:
        """Reset the delay after a correct code."""
        AuthenticatorDevice.objects.filter(pk=self.pk).update(
            throttling_failure_count=0, throttling_failure_timestamp=None, last_used_at=timezone.now()
        )

    def get_throttle_factor(self) -> int:
        return 1

    def secret_text(self) -> str:
        """The seed in base32, for typing."""
        return base64.b32encode(self.totp().key).decode()

    def provisioning_uri(self) -> str:
        """The content of the QR code: seed, issuer and account in the Key URI format."""
        label = quote(f"{_ISSUER}:{self.user.email}", safe="@:")
        query = urlencode({"secret": self.secret_text(), "issuer": _ISSUER, "digits": CODE_DIGITS})
        return f"otpauth://totp/{label}?{query}&period={STEP_SECONDS}"

    @property
    def bound_to(self) -> str:
        """The associated data of the seed's encryption."""
        return f"authenticator:{self.pk}"

    def sealed_content(self) -> dict[str, object]:
        return {"authenticator": str(self.pk), "user": self.user_id}

    @property
    def owner(self) -> str:
        """Whose authenticator it is, for the message that its seed can no longer be decrypted, or its seal is wrong."""
        return str(self.user.email)

    def _use(self, code: int) -> bool:
        totp = self.totp()
        if not totp.verify(code, tolerance=_TOLERATED_STEPS):
            return False
        used = AuthenticatorDevice.objects.filter(pk=self.pk, last_t__lt=totp.t()).update(last_t=totp.t())
        if used:
            self.clear_failures()
        return used == 1


RECOVERY_CODE_COUNT = 10
_RECOVERY_CODE_LENGTH = 28  # 137 bits


class RecoveryCode(models.Model):
    """One recovery code, stored as a keyed hash.

    A code is one of 2^137 at random, so it cannot be guessed even with both the table and the key; a slow
    password hash would cost seconds at each attempt and add nothing. The key (`SECRET_KEY`) makes a stolen
    table useless on its own. Codes hashed with an old key remain valid while that key is in
    `SECRET_KEY_FALLBACKS`.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return "used recovery code" if self.used_at else "recovery code"

    @staticmethod
    def generate() -> str:
        """A new random code in groups of four, such as "7KQ2-M4XB-Z9TD-VR3H-C6WN-8YPA-J5EG"."""
        return _random_code(_RECOVERY_CODE_LENGTH)

    @staticmethod
    def digests(code: str, *, user_id: int) -> list[str]:
        """The hashes of this code with each valid key, the current key first."""
        letters = "".join(letter for letter in code.upper() if letter.isalnum())
        return _keyed_hashes("accounts.recovery", f"{user_id}:{letters}")


class AccessReview(models.Model):
    """A review of who may do what, signed off by two people. `rows` is the report that they agreed on."""

    WRITES = APPEND_ONLY

    operation = models.UUIDField(unique=True)
    signed_at = models.DateTimeField()
    prepared_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    approved_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    rows = models.JSONField()

    class Meta:
        default_permissions = ()
        ordering = ("-signed_at", "-pk")
        constraints = [
            models.CheckConstraint(
                condition=~Q(prepared_by=F("approved_by")), name="access_review_by_two_people"
            ),
        ]

    def __str__(self) -> str:
        return f"access review of {self.signed_at:%Y-%m-%d}"


class RefusedSignIns(models.Model):
    """How often sign-in was refused for one account from one address in the half hour since `since`.

    `wrong` counts wrong passwords, towards the lock-out; `refused` all refusals, of which `reported` are in the audit
    log. `account` is a keyed hash; empty for attempts from an address while it was locked out. The sweeper deletes a
    row once its half hour has ended.
    """

    account = models.CharField(max_length=64)
    address = models.CharField(max_length=64)
    since = models.DateTimeField()
    wrong = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    reported = models.PositiveIntegerField(default=0)
    is_lock_recorded = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["account", "address"], name="refused_sign_ins_once"),
        ]
        indexes = [models.Index(fields=["address"], name="refused_sign_ins_by_address")]

    def __str__(self) -> str:
        return f"{self.refused} refused sign-ins from {self.address}"


class StaffSessionManager(BaseSessionManager["StaffSession"]):
    def live(self) -> QuerySet["StaffSession"]:
        """Sessions that are within the idle limit and the absolute limit."""
        return self.filter(expire_date__gt=timezone.now())


class StaffSession(AbstractBaseSession):
    """A session, written by `accounts.sessions.SessionStore`. The columns repeat values of its data.

    The primary key is the hash of the session's key.
    """

    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")
    device = models.ForeignKey(
        AuthenticatorDevice, null=True, on_delete=models.CASCADE, related_name="sessions"
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

    def load_rights(self) -> None:
        """Give the person the roles and the restrictions that `sessions.SessionStore` has loaded with it."""
        if self.user is not None:
            self.user.roles_held = split_texts(vars(self).get("joined_roles"))
            self.user.restrictions = restrictions_of(vars(self))

    @property
    def reference(self) -> str:
        """An identifier of the session that may be shown."""
        return salted_hmac("accounts.session", self.session_key, algorithm="sha256").hexdigest()[:16]

    @property
    def browser(self) -> str:
        """Browser and system in two words, from the User-Agent."""
        browser, system = _first_match(self.user_agent, _BROWSERS), _first_match(self.user_agent, _SYSTEMS)
        if browser and system:
            return gettext("{browser} on {system}").format(browser=browser, system=system)
        return browser or system or gettext("Unknown browser")


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


def _first_match(text: str, names: dict[str, str]) -> str:
    return next((name for mark, name in names.items() if mark in text), "")
