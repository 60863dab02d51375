"""The audit log: entries in a hash chain, its head, where checkpoints of it are kept, and its last verification."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.db import models
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext

from backoffice.audit import canonical
from backoffice.audit.actions import Action
from backoffice.core.database.writes import APPEND_ONLY, NEVER_DELETED
from backoffice.core.web.formatting import in_words, labelled, unreadable_text

# How an entry is shown. The audit app must not import the others: the URL names of their pages are listed
# here, and they register the sentences of their codes.
TARGET_PAGES = {
    "operations.operation": "operations:detail",
    "ledger.transaction": "operations:transaction",
    "policies.policyversion": "governance:policy_version",
    "webhooks.delivery": "webhooks:delivery",
}
SENTENCES: dict[str, Callable[[Any], str]] = {}
"""Functions that turn the codes under a name of the detail into a sentence, registered by the apps."""


class Entry(models.Model):
    """One recorded action. Never updated and never deleted: database triggers refuse both."""

    WRITES = APPEND_ONLY

    position = models.PositiveBigIntegerField(primary_key=True)
    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    actor_label = models.TextField()
    address = models.TextField(blank=True)
    request_id = models.TextField(blank=True)
    action = models.CharField(max_length=64)
    target_type = models.TextField(blank=True)
    target_id = models.TextField(blank=True)
    target_label = models.TextField(blank=True)
    detail = models.JSONField(default=dict)
    version = models.CharField(max_length=8, default=canonical.VERSION)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        default_permissions = ("view",)
        ordering: ClassVar[list[str]] = ["-position"]
        verbose_name_plural = "entries"
        indexes = (
            models.Index(fields=["at"], name="audit_entry_at"),
            models.Index(fields=["actor", "-position"], name="audit_entry_actor"),
            models.Index(fields=["action", "-position"], name="audit_entry_action"),
            models.Index(fields=["target_type", "target_id", "-position"], name="audit_entry_target"),
        )

    def __str__(self) -> str:
        return " ".join(part for part in (self.actor_label, self.action_label, self.target_label) if part)

    @property
    def is_unreadable(self) -> bool:
        """Whether only its position is known, as its other columns cannot be read (`log.read_entries`)."""
        return self.at is None

    @property
    def action_label(self) -> str:
        """The verb of the sentence; the bare action if this version does not define it."""
        return str(Action(self.action).label) if self.action in Action else self.action

    @property
    def target_url(self) -> str:
        """The URL of the object's page; empty if it has none."""
        page = TARGET_PAGES.get(self.target_type)
        if page is None:
            return ""
        try:
            return reverse(page, args=[self.target_id])
        except NoReverseMatch:  # an old entry may name a page that no longer exists
            return ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The detail as names and readable texts; as it is stored, if it cannot be read."""
        if not isinstance(self.detail, dict):
            return [(gettext("Details"), unreadable_text(self.detail))]
        return [
            (name.replace("_", " ").capitalize(), in_words(SENTENCES.get(name, _readable), value))
            for name, value in self.detail.items()
        ]

    def detail_of(self, name: str) -> Any:
        """This member of the detail, or None. The detail of a forged entry may be something other than an object."""
        return self.detail.get(name) if isinstance(self.detail, dict) else None

    def code_of(self, name: str) -> str:
        """The code of this member of the detail, such as of a refusal; empty if it has none."""
        stored = self.detail_of(name)
        code = stored.get("code") if isinstance(stored, dict) else None
        return code if isinstance(code, str) else ""

    def members(self) -> dict[str, object]:
        """The content that the hash covers."""
        return hashed_members(vars(self))

    def digest(self) -> str:
        """The hash computed from the other columns, which the stored one must equal."""
        return canonical.digest(self.members())


def target_uuid(target_id: str) -> UUID | None:
    """The id of the object of an entry as a UUID; None if it is no UUID, as in a forged entry."""
    try:
        return UUID(target_id)
    except ValueError:
        return None


def hashed_members(columns: Mapping[str, Any]) -> dict[str, object]:
    """The content of an entry that its hash covers: all columns except the hash itself (see `canonical`)."""
    return {
        "position": columns["position"],
        "at": canonical.canonical_time(columns["at"]),
        "actor": None if columns["actor_id"] is None else str(columns["actor_id"]),
        "actor_label": columns["actor_label"],
        "address": columns["address"],
        "request_id": columns["request_id"],
        "action": columns["action"],
        "target_type": columns["target_type"],
        "target_id": columns["target_id"],
        "target_label": columns["target_label"],
        "detail": columns["detail"],
        "version": columns["version"],
        "previous_hash": columns["previous_hash"],
    }


class ChainHead(models.Model):
    """Position and hash of the newest entry, in a single row, so that a truncated log is detected."""

    WRITES = NEVER_DELETED

    position = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, default=canonical.GENESIS)

    class Meta:
        default_permissions = ()
        constraints = (models.CheckConstraint(condition=models.Q(pk=1), name="audit_one_chain_head"),)

    def __str__(self) -> str:
        return f"{self.position}:{self.hash}"


class CheckpointDestination(models.Model):
    """What is known of one destination of checkpoints: the newest one it got, and what went wrong last.

    It serves the pages and the alarms. The proof is at the destination itself.
    """

    address = models.CharField(max_length=500, primary_key=True)
    since = models.DateTimeField()  # when this destination was first used
    position = models.PositiveBigIntegerField(default=0)  # of the newest checkpoint delivered
    hash = models.CharField(max_length=64, default=canonical.GENESIS)
    delivered_at = models.DateTimeField(null=True)
    compared_at = models.DateTimeField(null=True)  # when its checkpoints were last read back and compared
    problem = models.JSONField(default=dict)  # why it last failed; empty after a success
    failed_at = models.DateTimeField(null=True)
    # The checkpoint that contradicts the log, until a verification finds none.
    fault = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        ordering: ClassVar[list[str]] = ["address"]

    def __str__(self) -> str:
        return self.address


class LastVerification(models.Model):
    """The result of the last verification of the whole chain: one row."""

    at = models.DateTimeField()
    verified = models.PositiveBigIntegerField()
    newest_hash = models.CharField(max_length=64)
    fault = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        constraints = (models.CheckConstraint(condition=models.Q(pk=1), name="audit_one_last_verification"),)

    def __str__(self) -> str:
        return "verification of the audit log"


def _readable(value: object) -> str:
    match value:
        case bool():
            return gettext("yes") if value else gettext("no")
        case dict():
            return ", ".join(labelled(name, _readable(member)) for name, member in value.items()) or gettext(
                "none"
            )
        case list():
            return ", ".join(map(_readable, value)) or gettext("none")
        case None | "":
            return gettext("none")
    return str(value)
