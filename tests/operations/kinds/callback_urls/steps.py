"""Steps of a change of the callback URL."""

from typing import Any

from backoffice.operations.kinds.callback_url import CallbackUrlPayload
from tests.operations.kinds.samples import SAMPLES

BEFORE = "https://hooks.example.com/before"
AFTER = "https://pay.example.com/webhooks"


def sample(**changes: Any) -> CallbackUrlPayload:
    payload = SAMPLES["callback_url"].model_copy(update=changes)
    assert isinstance(payload, CallbackUrlPayload)
    return payload
