"""What the forms about API keys have in common: the choice of a key, and the rotation that they are a step of."""

from typing import Any
from uuid import UUID

from django import forms

from backoffice.core.credentials import key_known_here
from backoffice.core.display import kept_time
from backoffice.core.gateway import PATIENCE_OF_A_CHECK
from backoffice.operations.kinds.base import ChangeKind, Counterparty, Facts, KindForm, Payload, Receipt
from backoffice.operations.kinds.listed_keys import (
    PATIENCE_OF_A_FORM,
    ListedKey,
    hash_in_use,
    read_keys,
)
from payments_gateway import GatewayError

UNREADABLE = "The service's list of keys cannot be read now. Nothing was prepared; try again."


def rotation_field() -> forms.CharField:
    """The guided rotation that the operation is a step of, if it is one. Filled in by a link, not by people."""
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
                "This link is damaged. Open the step from the rotation again."
            ) from exc


class KeyChoiceForm(RotationForm):
    """Names one of the service's keys. Only what the service lists can be chosen."""

    ended_too = False  # whether keys that were invalidated can be chosen, too

    short_hash = forms.ChoiceField(
        label="API key",
        error_messages={
            "required": "Choose a key.",
            "invalid_choice": "The service's list has no key %(value)s that this could be done to.",
        },
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.keys: dict[str, ListedKey] = {}
        self.is_readable = True
        try:
            listed = read_keys(patience=PATIENCE_OF_A_CHECK if self.is_bound else PATIENCE_OF_A_FORM)
        except GatewayError:
            self.is_readable = False
            listed = []
        self.knows_own_key = any(key.is_in_use for key in listed)
        self.keys = {key.short_hash: key for key in listed if self.ended_too or key.ended_at is None}
        self._offer([(key.short_hash, key.label) for key in self.keys.values()])

    def clean(self) -> dict[str, Any]:
        """Refuse where the list cannot be read: nobody could tell which key is meant."""
        values = super().clean() or self.cleaned_data
        if not self.is_readable:
            self.add_error("short_hash", UNREADABLE)
        return values

    @property
    def chosen(self) -> ListedKey:
        """The key that was chosen. Call only on a valid form."""
        return self.keys[self.cleaned_data["short_hash"]]

    def _offer(self, choices: list[tuple[str, str]]) -> None:
        field: Any = self.fields["short_hash"]
        if not self.is_readable:
            typed = self.data.get("short_hash") or self.initial.get("short_hash", "")
            choices = [(typed, f"{typed} (the list cannot be read now)")] if typed else []
            field.help_text = (
                "The service did not answer in time. Load the page again to choose from its list."
            )
        field.choices = [("", "Choose a key"), *choices]


class KeyEndPayload(Payload):
    """The key that ends, as the service listed it when this was prepared."""

    SEEN = frozenset({"name", "scope", "expires", "is_known_here", "knows_own_key"})

    short_hash: str
    name: str
    scope: str
    expires: str  # ISO 8601, so that everybody reads it in a time zone of their own; empty for never
    is_known_here: bool  # whether this installation has the key itself
    knows_own_key: bool  # whether the list showed which key Countersign itself uses
    rotation: str = ""


class KeyEndForm(KeyChoiceForm):
    """The choice of the key that is to end."""

    def content(self) -> KeyEndPayload:
        key = self.chosen
        return KeyEndPayload(
            short_hash=key.short_hash,
            name=key.name,
            scope=key.scope,
            expires=key.expires_at.isoformat() if key.expires_at else "",
            is_known_here=key_known_here(key.short_hash) is not None,
            knows_own_key=self.knows_own_key,
            rotation=self.cleaned_data["rotation"],
        )


class KeyEndKind(ChangeKind[KeyEndPayload]):
    """Ends a key of the service's list; a kind says how."""

    payload_type = KeyEndPayload
    form_type = KeyEndForm
    is_decided_alone = True

    def counterparty(self, payload: KeyEndPayload) -> Counterparty:
        return Counterparty(payload.name or "API key", payload.short_hash)

    def facts(self, payload: KeyEndPayload) -> Facts:
        return [
            ("API key", payload.name or "without a name"),
            ("Short hash", payload.short_hash),
            ("It may", payload.scope),
            ("Ends", kept_time(payload.expires) or "never, by itself"),
            ("Last use", self._last_use(payload)),
            *rotation_fact(payload.rotation),
        ]

    def initial(self, payload: KeyEndPayload) -> dict[str, Any]:
        return payload.model_dump(include={"short_hash", "rotation"})

    def cautions(self, payload: KeyEndPayload) -> list[str]:
        if payload.short_hash == hash_in_use():
            return [
                "Countersign itself calls the service with this key. When it ends, nothing can be read or sent any "
                "more. Switch to another key first: a guided rotation does it in the right order."
            ]
        if not payload.knows_own_key:
            return [
                "The list did not show which key Countersign itself uses, so it may be this one. If it is, nothing "
                "can be read or sent any more once it ends."
            ]
        return []

    def _last_use(self, payload: KeyEndPayload) -> str:
        if payload.short_hash == hash_in_use():
            return "in use by Countersign now"
        return "not told by the service; not used by Countersign now"

    def ended(self) -> Receipt:
        """The definitive answer: the key has ended."""
        return Receipt(is_final=True)


def rotation_fact(rotation: str) -> Facts:
    """That the operation is a step of a guided rotation, where it is one."""
    return [("Part of", f"the guided rotation {rotation[:8]}")] if rotation else []
