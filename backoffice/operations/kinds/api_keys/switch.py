"""Switch this installation to another API key, after a harmless read with that key has succeeded."""

from typing import Any
from uuid import UUID

from django import forms
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core import credentials
from backoffice.core.encryption import DecryptionError
from backoffice.core.gateway import PAGE_TIMEOUT, gateway_for_key
from backoffice.core.models import GatewayKey
from backoffice.core.web.formatting import quoted
from backoffice.operations.kinds.api_keys.base import (
    CREATING_KIND,
    RotationForm,
    rotation_facts,
    translated_scope,
)
from backoffice.operations.kinds.base import ChangeKind, Facts, OutdatedError, Payload, Recipient, SendReceipt
from backoffice.operations.models.secret import Secret
from payments_gateway import NotSentError, PaymentsGateway, ReadFailedError

CREATED, FORMER = "made", "kept"
_GONE = gettext_noop(
    "The key is not available for the switch: it was viewed, is already in use, or its stored copy was deleted. "
    "Nothing was switched."
)


class ApiKeySwitchPayload(Payload):
    """The key to switch to: `made:` and the creating operation, or `kept:` and a former key."""

    OBSERVED = frozenset({"key_name", "short_hash", "scope", "replaced_name", "replaced_hash"})

    target: str
    key_name: str
    short_hash: str
    scope: str
    replaced_name: str
    replaced_hash: str
    rotation: str = ""


class ApiKeySwitchForm(RotationForm):
    """Asks for one of the keys that are stored here and not in use."""

    target = forms.ChoiceField(
        label=_("Switch to"),
        help_text=_("Keys stored in Countersign. You do not need to see or enter the key."),
        error_messages={
            "required": _("Select a key. If there is none, create one first."),
            "invalid_choice": _("This key is no longer stored in Countersign. Select another."),
        },
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.targets = {target.target: target for target in stored_keys()}
        target: Any = self.fields["target"]
        labels = [(name, _choice_label(payload)) for name, payload in self.targets.items()]
        target.choices = [("", gettext("Select a key")), *labels]

    def content(self) -> ApiKeySwitchPayload:
        chosen = self.targets[self.cleaned_data["target"]]
        return chosen.model_copy(update={"rotation": self.cleaned_data["rotation"]})

    def clean(self) -> dict[str, Any]:
        """Refuse the form if the key in use is unknown: the approver could not see what is replaced."""
        values = super().clean() or self.cleaned_data
        try:
            own = credentials.key_in_use()
        except NotSentError as exc:
            self.add_error(None, gettext("{reason} Nothing was prepared.").format(reason=exc))
            return values
        replaced = {"replaced_name": own.name, "replaced_hash": own.short_hash}
        self.targets = {name: one.model_copy(update=replaced) for name, one in self.targets.items()}
        return values


class ApiKeySwitchKind(ChangeKind[ApiKeySwitchPayload]):
    """Changes nothing at the provider, and needs no one-time code."""

    name = "api_key_switch"
    label = _("API key switch")
    plural = _("API key switches")
    letter = "S"
    verb = _("Switch API key")
    payload_type = ApiKeySwitchPayload
    form_type = ApiKeySwitchForm
    excluded_from_bulk = True
    skips_preflight = True  # the remedy if the provider refuses the key in use

    def sentence(self, payload: ApiKeySwitchPayload) -> str:
        return gettext("Switch Countersign to API key {key}").format(
            key=_key_label(payload.key_name, payload.short_hash)
        )

    def recipient(self, payload: ApiKeySwitchPayload) -> Recipient:
        return Recipient(payload.key_name or gettext("API key"), payload.short_hash)

    def facts(self, payload: ApiKeySwitchPayload) -> Facts:
        return [
            (gettext("New key"), _key_label(payload.key_name, payload.short_hash)),
            (gettext("Permissions"), translated_scope(payload.scope)),
            (gettext("Current key"), _key_label(payload.replaced_name, payload.replaced_hash)),
            (
                gettext("Before the switch"),
                gettext("GET /balance must succeed with the new key. Otherwise nothing is switched."),
            ),
            (
                gettext("After the switch"),
                gettext("The current key stays stored and valid until it is invalidated."),
            ),
            *rotation_facts(payload.rotation),
        ]

    def initial(self, payload: ApiKeySwitchPayload) -> dict[str, Any]:
        return payload.model_dump(include={"target", "rotation"})

    def send(
        self, gateway: PaymentsGateway, payload: ApiKeySwitchPayload, otp: SecretStr | None
    ) -> SendReceipt:
        """Try the key, then take it into use in one commit that also deletes the copy kept for showing.

        Raises RejectedError if the provider refuses the key, NotSentError if it could not be tried or is
        gone, or if it would replace another key than the one that was approved.
        """
        row = _stored_row(payload)
        try_key(SecretStr(row.decrypted()))
        try:
            with transaction.atomic():
                _check_replaces_approved(payload)
                credentials.switch_to_key(row)
                if payload.target.startswith(CREATED):
                    _delete_copy(row)
        except IntegrityError as exc:
            raise NotSentError.of(
                gettext_noop(
                    "Another switch was completed first. Nothing was switched. Check the key in use before you choose "
                    "“Send” again."
                )
            ) from exc
        return SendReceipt(
            is_final=True,
            result={"name": payload.key_name, "short_hash": payload.short_hash},
        )

    def is_done(self, gateway: PaymentsGateway, payload: ApiKeySwitchPayload) -> bool:
        """Whether exactly this key is in use."""
        credentials.clear_key_cache()
        own = credentials.key_in_use()
        return payload.target in {f"{CREATED}:{own.made_by}", f"{FORMER}:{own.pk}"}

    def outcome_facts(self, payload: ApiKeySwitchPayload, result: dict[str, str]) -> Facts:
        return (
            [(gettext("Key in use"), _key_label(result.get("name", ""), result["short_hash"]))]
            if result
            else []
        )


def _check_replaces_approved(payload: ApiKeySwitchPayload) -> None:
    """Raises NotSentError if another key is in use by now than the one that this replaces, which a rotation retires."""
    credentials.clear_key_cache()
    if credentials.key_in_use().short_hash != payload.replaced_hash:
        raise OutdatedError.of(
            gettext_noop(
                "Countersign was switched to another key after this was prepared. Nothing was switched. Check the key "
                "in use."
            )
        )


def _delete_copy(row: GatewayKey) -> None:
    """Delete the copy that was kept for showing. Raises NotSentError if it was shown meanwhile."""
    deleted, _ = Secret.objects.filter(operation=row.made_by).delete()
    if not deleted:
        raise OutdatedError.of(_GONE)


def try_key(key: SecretStr) -> list[str]:
    """Read the balances with this key and return their currencies. Nothing changes.

    Raises RejectedError if the provider refuses the key, NotSentError if it cannot be read now.
    """
    try:
        with gateway_for_key(key, deadline=PAGE_TIMEOUT) as client:
            return sorted(balance.currency for balance in client.balances.list())
    except ReadFailedError as exc:
        raise NotSentError.of(
            gettext_noop("The key could not be tested: {error} Nothing was switched."), exc.status, error=exc
        ) from exc


def stored_keys() -> list[ApiKeySwitchPayload]:
    """Every key stored here and not in use: created and not shown yet, or a former one."""
    waiting = Secret.objects.filter(operation__kind=CREATING_KIND).select_related("operation")
    created = [_created_target(secret) for secret in waiting.order_by("-encrypted_at")]
    former = [
        _target(f"{FORMER}:{row.pk}", row.name, row.short_hash, "") for row in credentials.former_keys()
    ]
    return [*created, *former]


def _created_target(secret: Secret) -> ApiKeySwitchPayload:
    attempt = secret.operation.attempts.exclude(result=None).last()
    result = (attempt.result if attempt else None) or {}
    named = str(result.get("name") or secret.operation.recipient)
    known = str(result.get("short_hash") or _likely_hash(secret))
    return _target(f"{CREATED}:{secret.operation_id}", named, known, str(result.get("scope", "")))


def _likely_hash(secret: Secret) -> str:
    try:
        return credentials.probable_short_hash(SecretStr(secret.decrypted()))
    except DecryptionError:
        return ""


def _target(target: str, name: str, short_hash: str, scope: str) -> ApiKeySwitchPayload:
    return ApiKeySwitchPayload(
        target=target,
        key_name=name,
        short_hash=short_hash,
        scope=scope or gettext_noop("Unchanged"),
        replaced_name="",
        replaced_hash="",
    )


def _stored_row(payload: ApiKeySwitchPayload) -> GatewayKey:
    """The stored key as the row to take into use. Raises NotSentError if it is gone or unreadable."""
    where, _, pk = payload.target.partition(":")
    try:
        if where == FORMER:
            row = GatewayKey.objects.get(pk=UUID(pk), state=GatewayKey.State.FORMER)
            row.decrypted()
            return row
        secret = Secret.objects.get(operation=UUID(pk))
        row = GatewayKey(
            name=payload.key_name,
            short_hash=payload.short_hash,
            made_by=secret.operation_id,
            since=timezone.now(),
        )
        row.encrypt(secret.decrypted())
    except (GatewayKey.DoesNotExist, Secret.DoesNotExist, ValueError) as exc:
        raise OutdatedError.of(_GONE) from exc
    except DecryptionError as exc:
        raise NotSentError.of(
            gettext_noop("The key cannot be decrypted. Nothing was switched. Contact the operator.")
        ) from exc
    return row


def _key_label(name: str, short_hash: str) -> str:
    return f"{quoted(name)} ({short_hash})" if short_hash else quoted(name)


def _choice_label(payload: ApiKeySwitchPayload) -> str:
    origin = gettext("new, not in use yet") if payload.target.startswith(CREATED) else gettext("used before")
    return f"{payload.key_name} · {payload.short_hash} · {origin}"
