"""Delete an API key: it stops working and disappears from the provider's list (DELETE /user/api-key)."""

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.web.formatting import quoted
from backoffice.operations.kinds.api_keys.base import KeyEndForm, KeyEndKind, KeyEndPayload
from backoffice.operations.kinds.base import SendReceipt
from payments_gateway import PaymentsGateway


class ApiKeyDeleteForm(KeyEndForm):
    """Invalidated keys can be deleted, too."""

    includes_ended = True


class ApiKeyDeleteKind(KeyEndKind):
    """Needs no one-time code."""

    name = "api_key_delete"
    label = _("API key deletion")
    plural = _("API key deletions")
    letter = "D"
    verb = _("Delete API key")
    form_type = ApiKeyDeleteForm

    def sentence(self, payload: KeyEndPayload) -> str:
        named = f"{quoted(payload.name)} ({payload.short_hash})" if payload.name else payload.short_hash
        return gettext("Delete API key {key} at the provider").format(key=named)

    def send(self, gateway: PaymentsGateway, payload: KeyEndPayload, otp: SecretStr | None) -> SendReceipt:
        self.check_use_approved(payload)
        return self.ended(gateway.api_keys.delete(payload.short_hash))

    def is_done(self, gateway: PaymentsGateway, payload: KeyEndPayload) -> bool:
        """A key that is no longer listed is deleted."""
        return all(key.short_hash != payload.short_hash for key in gateway.api_keys.list())
