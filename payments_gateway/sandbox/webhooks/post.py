"""One POST to the callback URL, to this machine only: a simulation sends nothing to anybody else."""

import ipaddress
from dataclasses import dataclass

import requests
import urllib3

from payments_gateway.connection import exchange, open_session
from payments_gateway.errors import NotSentError, OutcomeUnknownError

_CONNECT_SECONDS = 2
_TOTAL_SECONDS = 5
_READ_BYTES = 64 * 1024
_HEADERS = {"Content-Type": "application/json", "User-Agent": "business-payments-sandbox"}


class NotOursError(Exception):
    """Nothing may be sent to this address; the message says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one try ended: the status that came back, or none and the reason in words."""

    status: int | None
    reason: str = ""

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post(url: str, body: bytes) -> Outcome:
    """Send once and wait at most five seconds for the whole answer; redirects are not followed.

    Raises NotOursError for an address that is not of this machine.
    """
    request = _prepared(url, body)
    _check_loopback(request.url or "")
    try:
        with open_session(None) as session:
            answer = exchange(
                session, request, connect=_CONNECT_SECONDS, total=_TOTAL_SECONDS, limit=_READ_BYTES
            )
    except NotSentError:
        return Outcome(None, "nobody took the connection")
    except OutcomeUnknownError:
        return Outcome(None, "no whole answer came in time")
    return Outcome(answer.status)


def _prepared(url: str, body: bytes) -> requests.PreparedRequest:
    try:
        return requests.Request("POST", url, _HEADERS, data=body).prepare()
    except (requests.RequestException, ValueError) as exc:
        raise NotOursError(f"{url[:200]} is not a web address") from exc


def _check_loopback(url: str) -> None:
    """Look at the host with the eyes of the library that connects. Names other than localhost are not looked up."""
    host = urllib3.util.parse_url(url).host or ""
    if host == "localhost":
        return
    try:
        is_ours = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_ours = False
    if not is_ours:
        raise NotOursError(
            f"{host or url[:200]} is not this machine, and the simulation sends nothing elsewhere"
        )
