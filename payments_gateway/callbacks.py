"""The callback URL: where the service sends its webhooks. What arrives there is judged in `deliveries`."""

from payments_gateway._answers import Reply, acknowledged
from payments_gateway._transport import Transport
from payments_gateway.dialect import Dialect
from payments_gateway.money import UnreadableError
from payments_gateway.schemas.callbacks import CallbackUrl


class Callbacks:
    """The operations under /callbackurl."""

    def __init__(self, transport: Transport, dialect: Dialect) -> None:
        self._transport = transport
        self._dialect = dialect

    def set_url(self, url: str) -> None:
        """Let the service send its webhooks to this address from now on (PUT /callbackurl).

        An http or https URL of at most 2048 characters; pydantic's ValidationError otherwise, and nothing was sent.
        Sent once and never repeated by the client; setting the same address again is harmless. Raises RejectedError
        when the service refused, NotSentError when nothing left this machine, OutcomeUnknownError otherwise: then
        `url` tells. The answer has `success` and `message` only. Specification: Endpoints, PUT /callbackurl; Events.
        """
        body = CallbackUrl(callback_url=url).model_dump(by_alias=True)
        self._transport.send_once("PUT", "/callbackurl", body, into=acknowledged)

    def url(self) -> str:
        """Return the address that webhooks go to, empty when none is set (GET /callbackurl).

        May be repeated. An answer without the member `callbackUrl` is not "none": it is a failed read. Raises
        RejectedError when the service refused, ReadFailedError otherwise.
        Specification: Endpoints, GET /callbackurl.
        """
        return self._transport.read("GET", "/callbackurl", into=_url)


def _url(reply: Reply) -> str:
    if "callbackUrl" not in reply.data:
        raise UnreadableError("it does not say which callback URL is set, nor that none is")
    url = reply.data["callbackUrl"]
    if not isinstance(url, str | None):
        raise UnreadableError("its callback URL is not a text")
    return url or ""
