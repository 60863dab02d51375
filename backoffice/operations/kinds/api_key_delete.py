"""Deleting an API key: it leaves the service's list, and stops working if it still did (DELETE /user/api-key)."""

from pydantic import SecretStr

from backoffice.operations.kinds.base import Receipt
from backoffice.operations.kinds.key_form import KeyEndForm, KeyEndKind, KeyEndPayload
from payments_gateway import PaymentsGateway


class ApiKeyDeleteForm(KeyEndForm):
    """Keys that were invalidated can be deleted, too."""

    ended_too = True


class ApiKeyDeleteKind(KeyEndKind):
    """Takes no token."""

    name = "api_key_delete"
    label = "API key deletion"
    plural = "Deletions of API keys"
    letter = "D"
    verb = "Delete API key"
    form_type = ApiKeyDeleteForm

    def sentence(self, payload: KeyEndPayload) -> str:
        named = f"“{payload.name}” ({payload.short_hash})" if payload.name else payload.short_hash
        return f"Delete the API key {named} from the service"

    def send(self, gateway: PaymentsGateway, payload: KeyEndPayload, token: SecretStr | None) -> Receipt:
        gateway.api_keys.delete(payload.short_hash)
        return self.ended()

    def is_done(self, gateway: PaymentsGateway, payload: KeyEndPayload) -> bool:
        """A key that is listed no more is deleted."""
        return all(key.short_hash != payload.short_hash for key in gateway.api_keys.list())
