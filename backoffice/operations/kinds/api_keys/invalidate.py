"""Invalidate an API key: it stops working at once and stays in the list (POST /user/api-key/invalidate)."""

from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.credentials import stored_key
from backoffice.core.web.formatting import quoted
from backoffice.operations.kinds.api_keys.base import KeyEndKind, KeyEndPayload
from backoffice.operations.kinds.base import Facts, OutdatedError, SendReceipt
from payments_gateway import PaymentsGateway


class ApiKeyInvalidateKind(KeyEndKind):
    """Needs no one-time code. Sends the key itself if this installation has it, otherwise its short hash."""

    name = "api_key_invalidate"
    label = _("API key invalidation")
    plural = _("API key invalidations")
    letter = "V"
    verb = _("Invalidate API key")

    def sentence(self, payload: KeyEndPayload) -> str:
        return gettext("Invalidate API key {key} permanently").format(key=_key_label(payload))

    def facts(self, payload: KeyEndPayload) -> Facts:
        named = gettext("The stored key") if payload.is_known_here else gettext("Its short hash")
        return [*super().facts(payload), (gettext("Sent to the provider"), named)]

    def send(self, gateway: PaymentsGateway, payload: KeyEndPayload, otp: SecretStr | None) -> SendReceipt:
        self.check_use_approved(payload)
        key = stored_key(payload.short_hash) if payload.is_known_here else SecretStr(payload.short_hash)
        if key is None:
            raise OutdatedError.of(
                gettext_noop(
                    "The key is no longer stored in Countersign, so it cannot be invalidated. Nothing was sent."
                )
            )
        return self.ended(gateway.api_keys.invalidate(key))

    def is_done(self, gateway: PaymentsGateway, payload: KeyEndPayload) -> bool:
        """A key that is no longer listed, or listed with the time of its end, no longer works."""
        listed = [key for key in gateway.api_keys.list() if key.short_hash == payload.short_hash]
        return all(key.deleted_at is not None for key in listed)


def _key_label(payload: KeyEndPayload) -> str:
    return f"{quoted(payload.name)} ({payload.short_hash})" if payload.name else payload.short_hash
