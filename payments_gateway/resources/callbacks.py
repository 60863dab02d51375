"""The callback URL to which the provider sends webhooks. `payments_gateway.webhooks` verifies what arrives there."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from payments_gateway.fields import RequestModel, RequiredText
from payments_gateway.responses import NOT_TEXT, ParsedResponse, read_acknowledgement, wrong_type
from payments_gateway.transport import Resource

_LONGEST_URL = 2048


def _check_web_address(text: str) -> str:
    if len(text) > _LONGEST_URL or not text.isprintable() or " " in text:
        raise ValueError(f"a web address has at most {_LONGEST_URL} characters and no spaces")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise ValueError(
            "a callback URL begins with https:// or http://, names a host, and holds no password"
        )
    return text


class CallbackUrl(RequestModel):
    """The URL to which the provider sends webhooks; at most 2048 characters, http or https."""

    callback_url: Annotated[RequiredText, Field(alias="callbackUrl"), AfterValidator(_check_web_address)]


class Callbacks(Resource):
    """The operations under /callbackurl."""

    def set_url(self, url: str) -> str:
        """Set the URL to which the provider sends webhooks, and return its message (PUT /callbackurl).

        An http or https URL of at most 2048 characters; otherwise NotSentError is raised. Sent once and never
        retried; setting the same address again is harmless. Raises RejectedError when the provider rejected the
        request, NotSentError when nothing was sent, OutcomeUnknownError otherwise: then read `url`. The response has
        `success` and `message` only. Specification: Endpoints, PUT /callbackurl; Events.
        """
        body = CallbackUrl(callback_url=url).model_dump(by_alias=True)
        return self._transport.send_once("PUT", "/callbackurl", body, into=read_acknowledgement)

    def url(self) -> str:
        """Return the URL to which webhooks are sent, empty when none is set (GET /callbackurl).

        Changes nothing and is retried. A response without the member `callbackUrl` is a failed read, not
        "none set". Raises RejectedError when the provider rejected the request, ReadFailedError otherwise.
        Specification: Endpoints, GET /callbackurl.
        """
        return self._transport.read("GET", "/callbackurl", into=_parse_callback_url)


def _parse_callback_url(response: ParsedResponse) -> str:
    url = response.data.get("callbackUrl")
    if "callbackUrl" not in response.data or not isinstance(url, str | None):
        raise wrong_type(response.data, "callbackUrl", NOT_TEXT)
    return url or ""
