"""Deliver to chat and push services by apprise, at a URL that names the service and holds its token.

A person may enter such a URL, so it is limited: services that are reached over HTTPS, at the hosts that
`NOTIFY_CHAT_HOSTS` lists, no redirect, no parameter that reads a file or another address, and public addresses only.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from apprise import Apprise, AppriseAsset, NotifyBase, plugins
from django.conf import settings
from django.utils.translation import gettext

from backoffice.notifications.channels.network import (
    TooSlowError,
    connections_to,
    is_listed,
    is_public,
    names_of,
    within,
)
from backoffice.notifications.contents import Contents
from backoffice.notifications.models import DeliveryError, Problem

SECONDS = 30.0
_READ_SECONDS = 10.0
_SERVICES = frozenset(
    {
        "discord",
        "gchat",
        "gotifys",
        "jsons",
        "matrixs",
        "mmosts",
        "msteams",
        "ntfys",
        "opsgenie",
        "pagerduty",
        "pbul",
        "pover",
        "rockets",
        "signals",
        "slack",
        "tgram",
        "workflow",
        "workflows",
        "wxteams",
        "webex",
        "zulip",
    }
)
_UNENCRYPTED = frozenset({"gotify", "json", "matrix", "mmost", "ntfy", "rocket", "signal"})
"""The same over HTTP, for servers inside one's own network only."""
_ON_ANY_SERVER = _UNENCRYPTED | {f"{name}s" for name in _UNENCRYPTED} | {"workflow", "workflows"}
"""Those whose URL names the server; in the mode `cloud` it does not."""
_PARAMETERS = frozenset({"api-version", "mode", "priority", "sig", "sound", "sp", "sv", "thread", "topic"})
"""The parameters that a URL may have. Others of apprise follow redirects, read files or switch verification off."""


class ChatUrlError(Exception):
    """This URL cannot be used. The message says why, and does not repeat it: it holds a token."""


@dataclass(frozen=True)
class ChatService:
    """A service that can be notified, its name, and the server that the URL names; empty for the service's own."""

    plugin: NotifyBase
    name: str
    server: str


def chat_service(url: str) -> ChatService:
    """The service at a URL of apprise, or at the address that Slack, Discord or Teams give. Raises ChatUrlError."""
    parts: dict[str, Any] | None = plugins.url_to_dict(  # type: ignore[no-untyped-call]
        url.strip(), secure_logging=True
    )
    if not parts:
        raise ChatUrlError(gettext("This URL does not belong to a supported chat service."))
    allowed = _SERVICES | (_UNENCRYPTED if settings.NOTIFY_PRIVATE_ADDRESSES else frozenset())
    if parts.get("schema") not in allowed:
        raise ChatUrlError(gettext("This chat service is not supported."))
    if set(parts.get("qsd") or {}) - _PARAMETERS or any(parts.get(f"qsd{sign}") for sign in "+-:"):
        raise ChatUrlError(gettext("Remove the parameters after the question mark of this URL."))
    limits = {"verify": True, "redirect": False, "cto": _READ_SECONDS, "rto": _READ_SECONDS}
    plugin = Apprise.instantiate({**parts, **limits}, asset=_asset())
    if plugin is None:
        raise ChatUrlError(gettext("This is not a complete URL of this service."))
    names_server = parts["schema"] in _ON_ANY_SERVER and getattr(plugin, "mode", "") != "cloud"
    return ChatService(plugin, str(plugin.service_name), str(plugin.host) if names_server else "")


def own_chat_service(url: str) -> ChatService:
    """The service of a URL that a person entered: its server is listed. Raises ChatUrlError."""
    service = chat_service(url)
    if service.server and not is_listed(service.server, settings.NOTIFY_CHAT_HOSTS):
        raise ChatUrlError(
            gettext(
                "Chat channels at {host} are not allowed. Ask the operator to add this host to "
                "COUNTERSIGN_NOTIFY_CHAT_HOSTS."
            ).format(host=service.server)
        )
    return service


def send_chat(contents: Contents, *, url: str) -> None:
    """Send one message to a service that the configuration names. Raises DeliveryError."""
    _send(contents, url, is_own=False)


def send_own_chat(contents: Contents, *, url: str) -> None:
    """Send one message to a service that a person named: to a listed host only. Raises DeliveryError."""
    _send(contents, url, is_own=True)


def _send(contents: Contents, url: str, *, is_own: bool) -> None:
    try:
        service = own_chat_service(url) if is_own else chat_service(url)
        is_sent = within(SECONDS, partial(_notify, service.plugin, contents, is_own=is_own))
    except ChatUrlError as exc:
        raise DeliveryError(Problem.ADDRESS_REFUSED) from exc
    except TooSlowError as exc:
        raise DeliveryError(Problem.TIMED_OUT) from exc
    except (OSError, TypeError, ValueError) as exc:
        raise DeliveryError(Problem.NOT_REACHED) from exc
    if not is_sent:
        raise DeliveryError(Problem.REFUSED)


def _notify(plugin: NotifyBase, contents: Contents, *, is_own: bool) -> bool:
    with connections_to(is_public), names_of(settings.NOTIFY_CHAT_HOSTS) if is_own else nullcontext():
        return bool(plugin.notify(title=f"Countersign: {contents.subject}", body="\n\n".join(contents.lines)))


def _asset() -> AppriseAsset:
    """Nothing on disk, no thread of its own, no template of a file, no redirect."""
    return AppriseAsset(
        app_id="Countersign",
        app_desc="Countersign",
        app_url=settings.PUBLIC_URL,
        async_mode=False,
        storage_mode="memory",
        secure_logging=True,
        allow_templates=False,
        http_redirects=False,
    )
