"""The one seam to the service: nothing else builds the client."""

from functools import cache

from django.conf import settings
from pydantic import SecretStr

from payments_gateway import GatewayConfig, PaymentsGateway


def gateway() -> PaymentsGateway:
    """The client for the configured service, one for each process."""
    return _build(
        settings.GATEWAY_URL,
        settings.GATEWAY_URL_V4,
        settings.GATEWAY_API_KEY,
        settings.GATEWAY_API_USER,
        settings.GATEWAY_USER_VERSION,
    )


@cache
def _build(
    base_url: str, base_url_v4: str, api_key: str, api_user: str, user_version: str
) -> PaymentsGateway:
    return PaymentsGateway(
        GatewayConfig(
            base_url=base_url,
            base_url_v4=base_url_v4,
            api_key=SecretStr(api_key),
            api_user=api_user,
            user_version=user_version,
        )
    )
