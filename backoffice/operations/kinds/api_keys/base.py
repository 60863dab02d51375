"""Shared by the kinds about API keys: the listed keys, the choice of one, and how a key ends.

The provider lists keys by a short hash only, and reports neither scope nor last use. The scope is known if an
operation of ours created the key.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead
from backoffice.core.credentials import clear_key_cache, key_in_use, stored_key
from backoffice.core.gateway import FORM_CHECK_TIMEOUT, PAGE_OPENING_TIMEOUT, gateway
from backoffice.core.web.formatting import local_time, local_time_of_iso
from backoffice.operations.kinds.base import (
    ChangeKind,
    Facts,
    KindForm,
    OutdatedError,
    Payload,
    Recipient,
    SendReceipt,
)
from backoffice.operations.models.operations import Attempt
from payments_gateway import GatewayError, KeyInfo, NotSentError

CREATING_KIND = "api_key_create"
FORM_DEADLINE = 2 * PAGE_OPENING_TIMEOUT  # one read, without which there is nothing to choose
_FIRST_EXPIRY_YEAR = 1971  # an expiry at the Unix epoch means none
_SCOPES = CachedRead(
    "api-key-scopes",
    TypeAdapter(dict[str, str]),
    keep_for=timedelta(days=30),
    fresh_for=timedelta(hours=1),
    retry_after=timedelta(minutes=1),
)
_DEFAULT_SCOPES = {"Master": "M", "GetOnly": "G", "Withdrawal": "W", "NoWithdrawal": "N"}
# Stored in English, in the content of an operation; translated where they are shown.
_SCOPE_DESCRIPTIONS = {
    "Master": gettext_noop("Full access: read, convert, pay out, and manage API keys"),
    "GetOnly": gettext_noop("Read only: balances, transactions, wallets"),
    "Withdrawal": gettext_noop("Read and pay out"),
    "NoWithdrawal": gettext_noop("Read, convert and change settings; no payouts"),
}
UNKNOWN_SCOPE = gettext_noop("Not reported by the provider")


@dataclass(frozen=True)
class ListedKey:
    """One key of the provider's list. `scope` is in plain words, or says that it is not known."""

    short_hash: str
    name: str
    scope: str
    expires_at: datetime | None
    ended_at: datetime | None
    is_in_use: bool

    @property
    def label(self) -> str:
        """One line that distinguishes it from every other key."""
        parts = [self.name or gettext("unnamed"), self.short_hash]
        if self.expires_at:
            parts.append(gettext("expires {time}").format(time=local_time(self.expires_at)))
        if self.ended_at:
            parts.append(gettext("invalidated"))
        if self.is_in_use:
            parts.append(gettext("in use by Countersign"))
        return " · ".join(parts)


def list_keys(*, patience: float) -> list[ListedKey]:
    """The keys as the provider lists them now (GET /user/api-keys). Raises GatewayError."""
    return describe_keys(gateway(deadline=patience).api_keys.list())


def describe_keys(listed: Iterable[KeyInfo]) -> list[ListedKey]:
    """The listed keys, with the scope and use that are known here."""
    made, own = scopes_of_own_keys(), short_hash_in_use()
    return [
        ListedKey(
            short_hash=key.short_hash,
            name=key.name,
            scope=made.get(key.short_hash, UNKNOWN_SCOPE),
            expires_at=expiry_of(key),
            ended_at=key.deleted_at,
            is_in_use=key.short_hash == own,
        )
        for key in listed
    ]


def expiry_of(key: KeyInfo) -> datetime | None:
    """When the key expires; None if it does not, in any of the provider's notations."""
    moment = key.expires_at
    return moment if key.is_expirable is not False and moment and moment.year >= _FIRST_EXPIRY_YEAR else None


def short_hash_in_use() -> str:
    """The short hash of the key that Countersign itself uses; empty if it cannot be read."""
    try:
        return key_in_use().short_hash
    except NotSentError:
        return ""


def scopes_of_own_keys() -> dict[str, str]:
    """Short hash -> scope in words, of every key that an operation of ours created."""
    attempts = Attempt.objects.filter(operation__kind=CREATING_KIND, result__isnull=False).only("result")
    results = [attempt.result or {} for attempt in attempts]
    return {result["short_hash"]: result["scope"] for result in results if result.get("short_hash")}


def available_scopes() -> Mapping[str, str]:
    """Code -> plain words of what a key can be allowed. Never fails.

    The provider's own list, read once an hour; if it cannot be read, the last one known, or the defaults.
    """
    scopes = _SCOPES.get(lambda: gateway(deadline=PAGE_OPENING_TIMEOUT).api_keys.scopes())
    known = scopes.value or _DEFAULT_SCOPES
    return {code: describe_scope(name) for name, code in known.items()}


def describe_scope(name: str) -> str:
    """What a scope allows in words; the provider's own name if it is not described here."""
    return f"{_SCOPE_DESCRIPTIONS[name]} ({name})" if name in _SCOPE_DESCRIPTIONS else name


def translated_scope(stored: str) -> str:
    """A stored description of a scope in the reader's language."""
    description, bracket, name = stored.partition(" (")
    return f"{gettext(description)}{bracket}{name}" if description else ""


KEYS_UNREADABLE = _(
    "The list of API keys could not be read from the provider. Nothing was prepared. Try again."
)


def rotation_field() -> forms.CharField:
    """The guided rotation that the operation is a step of, if any. Filled in by a link."""
    return forms.CharField(required=False, widget=forms.HiddenInput, max_length=36)


class RotationForm(KindForm):
    """A form that may be opened as a step of a guided rotation."""

    rotation = rotation_field()

    def clean_rotation(self) -> str:
        """The id of a rotation, or nothing."""
        written = str(self.cleaned_data["rotation"])
        try:
            return str(UUID(written)) if written else ""
        except ValueError as exc:
            raise forms.ValidationError(
                gettext("This link is not valid. Open the step from the rotation again.")
            ) from exc


class KeyChoiceForm(RotationForm):
    """Asks for one of the provider's keys. Only listed keys can be chosen."""

    includes_ended = False  # whether invalidated keys can be chosen, too

    short_hash = forms.ChoiceField(
        label=_("API key"),
        error_messages={
            "required": _("Select a key."),
            "invalid_choice": _(
                "Key %(value)s is not in the provider's list, or cannot be used here. Select another."
            ),
        },
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys: dict[str, ListedKey] = {}
        self.is_readable = True
        try:
            listed = list_keys(patience=FORM_CHECK_TIMEOUT if self.is_bound else FORM_DEADLINE)
        except GatewayError:
            self.is_readable = False
            listed = []
        self.knows_own_key = any(key.is_in_use for key in listed)
        self.keys = {key.short_hash: key for key in listed if self.includes_ended or key.ended_at is None}
        self._offer([(key.short_hash, key.label) for key in self.keys.values()])

    def clean(self) -> dict[str, Any]:
        """Refuse the form if the list cannot be read, since the chosen key could not be identified."""
        values = super().clean() or self.cleaned_data
        if not self.is_readable:
            self.add_error("short_hash", KEYS_UNREADABLE)
        return values

    @property
    def selected_key(self) -> ListedKey:
        """The key that was chosen. Call only on a valid form."""
        return self.keys[self.cleaned_data["short_hash"]]

    def _offer(self, choices: list[tuple[str, str]]) -> None:
        field: Any = self.fields["short_hash"]
        if not self.is_readable:
            typed = self.data.get("short_hash") or self.initial.get("short_hash", "")
            choices = [(typed, gettext("{key} (list not available)").format(key=typed))] if typed else []
            field.help_text = gettext(
                "The provider did not respond in time. Reload the page to select from its list."
            )
        field.choices = [("", gettext("Select a key")), *choices]


class KeyEndPayload(Payload):
    """The key that ends, as the provider listed it when this was prepared."""

    OBSERVED = frozenset({"name", "scope", "expires", "is_known_here", "knows_own_key", "is_in_use"})
    ADDED = frozenset({"is_in_use"})

    short_hash: str
    name: str
    scope: str
    expires: str  # ISO 8601, so that every reader sees it in their own time zone; empty for never
    is_known_here: bool  # whether this installation has the key itself
    knows_own_key: bool  # whether the list showed which key Countersign itself uses
    is_in_use: bool = False  # whether Countersign itself used it
    rotation: str = ""


class KeyEndForm(KeyChoiceForm):
    """The choice of the key that is to end."""

    def content(self) -> KeyEndPayload:
        key = self.selected_key
        return KeyEndPayload(
            short_hash=key.short_hash,
            name=key.name,
            scope=key.scope,
            expires=key.expires_at.isoformat() if key.expires_at else "",
            is_known_here=stored_key(key.short_hash) is not None,
            knows_own_key=self.knows_own_key,
            is_in_use=key.is_in_use,
            rotation=self.cleaned_data["rotation"],
        )


class KeyEndKind(ChangeKind[KeyEndPayload]):
    """Ends a key of the provider's list; each kind defines how."""

    payload_type = KeyEndPayload
    form_type = KeyEndForm
    excluded_from_bulk = True

    def recipient(self, payload: KeyEndPayload) -> Recipient:
        return Recipient(payload.name or gettext("API key"), payload.short_hash)

    def facts(self, payload: KeyEndPayload) -> Facts:
        return [
            (gettext("API key"), payload.name or gettext("unnamed")),
            (gettext("Short hash"), payload.short_hash),
            (gettext("Permissions"), translated_scope(payload.scope)),
            (gettext("Key expires"), local_time_of_iso(payload.expires) or gettext("No expiry")),
            (gettext("Last used"), self._last_use(payload)),
            *rotation_facts(payload.rotation),
        ]

    def initial(self, payload: KeyEndPayload) -> dict[str, Any]:
        return payload.model_dump(include={"short_hash", "rotation"})

    def cautions(self, payload: KeyEndPayload) -> list[str]:
        if payload.short_hash == short_hash_in_use():
            return [
                gettext(
                    "Countersign uses this key. Without it, nothing can be read or sent. "
                    "Switch to another key first: use a guided rotation."
                )
            ]
        if not payload.knows_own_key:
            return [
                gettext(
                    "Countersign may be using this key: the list did not show which one it uses. "
                    "Without its key, nothing can be read or sent."
                )
            ]
        return []

    def _last_use(self, payload: KeyEndPayload) -> str:
        if payload.short_hash == short_hash_in_use():
            return gettext("In use by Countersign")
        return gettext("Not reported by the provider. Not in use by Countersign.")

    def check_use_approved(self, payload: KeyEndPayload) -> None:
        """Raises NotSentError if Countersign was switched to this key after it was approved to end an unused one."""
        clear_key_cache()
        if payload.short_hash == short_hash_in_use() and not payload.is_in_use:
            raise OutdatedError.of(
                gettext_noop("Countersign uses this key since this was prepared. Nothing was sent.")
            )

    def ended(self, message: str) -> SendReceipt:
        """The definitive answer, with the provider's message: the key has ended."""
        return SendReceipt(is_final=True, message=message)


def rotation_facts(rotation: str) -> Facts:
    """The rotation that the operation is a step of, if any."""
    return [(gettext("Guided rotation"), rotation[:8])] if rotation else []
