"""The register: who may be paid, as two people agreed on it. The newest version of a key is in effect.

A version is never changed or deleted. Another account is another recipient: the key of a recipient never changes.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from backoffice.accounts.models import User
from backoffice.audit.canonical import canonical_time
from backoffice.core.database.writes import appended
from backoffice.core.encryption import SealedRow, SealState
from backoffice.core.web.formatting import mask_account, sort_key


class AlteredRecipientError(Exception):
    """The version in effect of a recipient was not stored by Countersign."""


class RecipientType(models.TextChoices):
    """What a payment is sent to."""

    BANK = "bank", _("Bank account")
    ADDRESS = "address", _("Crypto address")
    USER = "user", _("User of the provider")


class RecipientState(models.TextChoices):
    """Whether two people agreed on paying a recipient. Suggestions were saved by one person."""

    SUGGESTED = "suggested", pgettext_lazy("recipient", "Suggested")
    APPROVED = "approved", pgettext_lazy("recipient", "Approved")
    RETIRED = "retired", pgettext_lazy("recipient", "Retired")


_BETWEEN_NETWORKS = ", "


def join_networks(names: Iterable[str]) -> str:
    """The networks of an address as its version and the content of its change have them."""
    return _BETWEEN_NETWORKS.join(names)


class RecipientVersion(SealedRow):
    """One version of a recipient, and the operation by which two people agreed on it; a suggestion has none.

    `details_since` is when name, currency or networks were last changed: cooling begins there. `is_newest`, `sort_key`
    and `search_text` only find versions: nothing is decided by them.
    """

    WRITES = appended("is_newest", "seal")

    recipient = models.UUIDField(default=uuid.uuid4)
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=RecipientState)
    type = models.CharField(max_length=10, choices=RecipientType)
    key = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    alias = models.CharField(max_length=60, blank=True)
    notes = models.CharField(max_length=300, blank=True)
    currency = models.CharField(max_length=10, blank=True)
    # Of an address: all that it is approved on, `join_networks`.
    network = models.CharField(max_length=40, blank=True)
    bank_code = models.CharField(max_length=20, blank=True)
    bank = models.CharField(max_length=200, blank=True)
    account = models.CharField(max_length=128)
    operation = models.UUIDField(null=True)
    proposed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    approved_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", null=True)
    since = models.DateTimeField()
    details_since = models.DateTimeField()
    is_newest = models.BooleanField(default=True)
    sort_key = models.CharField(max_length=200, editable=False)
    search_text = models.TextField(editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["key", "number"], name="recipient_version_once"),
            models.CheckConstraint(
                condition=Q(state="suggested", number=0, operation__isnull=True, approved_by__isnull=True)
                | (
                    Q(number__gte=1, operation__isnull=False, approved_by__isnull=False)
                    & ~Q(state="suggested")
                ),
                name="recipient_version_agreed",
            ),
            models.CheckConstraint(
                condition=~Q(approved_by=models.F("proposed_by")), name="recipient_version_two_people"
            ),
        ]
        indexes = [
            models.Index(fields=["sort_key", "id"], name="recipient_by_name", condition=Q(is_newest=True)),
            models.Index(
                fields=["state", "sort_key", "id"], name="recipient_by_state", condition=Q(is_newest=True)
            ),
            models.Index(fields=["recipient", "-number"], name="recipient_versions"),
            models.Index(fields=["operation"], name="recipient_by_operation"),
        ]

    def __str__(self) -> str:
        is_named_by_bank = self.type == RecipientType.BANK and not self.alias
        return self.detail if is_named_by_bank else f"{self.title} · {self.detail}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.set_derived()
        super().save(*args, **kwargs)

    def set_derived(self) -> None:
        """Set what only finds the version. `save` does it; before `bulk_create` the caller has to."""
        self.sort_key = sort_key(self.title)[:200]
        self.search_text = searchable(self.name, self.alias, self.account, self.notes)

    def get_absolute_url(self) -> str:
        return reverse("governance:recipient", args=[self.recipient])

    @property
    def title(self) -> str:
        """The team's name for the recipient, or else its name."""
        return self.alias or self.name

    @property
    def detail(self) -> str:
        """What the title does not say: the holder, and as much of the account as is needed to recognise it."""
        if self.type == RecipientType.BANK:
            return f"{self.name}, {self.bank} {mask_account(self.account)}"
        named = [self.name] if self.alias else []
        return ", ".join(filter(None, (*named, self.account, self.network)))

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks on which two people agreed to pay an address."""
        return tuple(filter(None, self.network.split(_BETWEEN_NETWORKS)))

    def is_payable_on(self, network: str) -> bool:
        """Whether an address is approved on this network. Nothing else has networks."""
        return self.type != RecipientType.ADDRESS or network in self.networks

    @property
    def values(self) -> dict[str, str]:
        """What it fills in on the form of a payment."""
        if self.type == RecipientType.BANK:
            return {"bank_code": self.bank_code, "account_number": self.account, "typed_name": self.name}
        if self.type == RecipientType.ADDRESS:
            return {"address": self.account, "network": self.network if len(self.networks) == 1 else ""}
        return {"receiver_username": self.account}

    def sealed_content(self) -> Mapping[str, object]:
        """That these two people agreed on exactly this, by this operation."""
        return {
            "recipient_version": self.number,
            "recipient": str(self.recipient),
            "state": self.state,
            "type": self.type,
            "key": self.key,
            "name": self.name,
            "alias": self.alias,
            "notes": self.notes,
            "currency": self.currency,
            "network": self.network,
            "bank": [self.bank_code, self.bank],
            "account": self.account,
            "operation": str(self.operation),
            "people": [self.proposed_by_id, self.approved_by_id],
            "since": canonical_time(self.since),
            "details_since": canonical_time(self.details_since),
        }

    @property
    def owner(self) -> str:
        return f"Recipient {self}, version {self.number}"

    @property
    def is_altered(self) -> bool:
        """Whether the row is not as two people agreed on it. A suggestion proves nothing and has no seal."""
        return self.state != RecipientState.SUGGESTED and self.seal_state() != SealState.VALID


def searchable(*texts: str) -> str:
    """These texts as a search compares them."""
    return "\n".join(texts).casefold()
