"""Callback address: where the provider sends its webhooks (PUT /callbackurl)."""

import ipaddress
import re
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.gateway import FORM_CHECK_TIMEOUT
from backoffice.ledger import callback_url
from backoffice.ledger.callback_url import is_own_address, is_same_address, without_secret
from backoffice.operations.kinds.base import (
    ChangeKind,
    Facts,
    KindForm,
    OutdatedError,
    Payload,
    Recipient,
    SendReceipt,
)
from payments_gateway import GatewayError, NotSentError, PaymentsGateway
from payments_gateway.config import is_loopback

URL_MAX = 2048
_INTERNAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home.arpa")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_public_address(text: str) -> None:
    """Raises ValidationError unless the provider can and may send webhooks to this address.

    A literal IP address is checked; a host name is not resolved, because it may resolve differently a minute
    later. In the sandbox environment this machine is allowed, with plain http too.
    """
    parts = _parts(text)
    host = (parts.hostname or "").rstrip(".")
    if settings.ENVIRONMENT == "sandbox" and is_loopback(host):
        return
    if parts.scheme != "https":
        raise ValidationError(gettext("Use https. With http, others could read and forge webhooks."))
    if _is_internal_host(host):
        raise ValidationError(
            gettext("This address is private, local or reserved. Enter a URL that the provider can reach.")
        )


def _parts(text: str) -> SplitResult:
    if not (text.isascii() and text.isprintable()) or " " in text or "\\" in text:
        raise ValidationError(
            gettext("Use ASCII characters without spaces or backslashes. Write international names as xn--.")
        )
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError as exc:
        raise ValidationError(gettext("Enter a valid URL: the host or port cannot be read.")) from exc
    if parts.scheme not in {"http", "https"} or not has_host:
        raise ValidationError(gettext("Start with https:// and a host name."))
    if "@" in parts.netloc:
        raise ValidationError(gettext("Remove the username and password: URLs are logged."))
    if "#" in text:
        raise ValidationError(gettext("Remove # and the text after it: it is never sent."))
    return parts


def _is_internal_host(host: str) -> bool:
    """Whether the host is not public, by its address or its name alone."""
    try:
        return not _is_public(ipaddress.ip_address(host))
    except ValueError:
        labels = host.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        return True  # an IP address in an unusual notation, such as 127.1 or 0x7f000001
    return len(labels) == 1 or any(host == name or host.endswith(f".{name}") for name in _INTERNAL_NAMES)


def _is_public(address: IpAddress) -> bool:
    address = _embedded_ipv4(address)
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified or address.is_link_local
    )


def _embedded_ipv4(address: IpAddress) -> IpAddress:
    """The IPv4 address embedded in an IPv6 address, if there is one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


class CallbackUrlPayload(Payload):
    """The new address, and the one that it replaces; empty if none was set."""

    OBSERVED = frozenset({"previous"})

    url: str
    previous: str


class CallbackUrlForm(KindForm):
    """Asks for the address, and reads the present one from the provider."""

    url = forms.CharField(
        label=_("New URL"),
        max_length=URL_MAX,
        help_text=_(
            "Starts with https://. Host names are not checked: make sure that it leads to your own server."
        ),
        validators=[check_public_address],
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "spellcheck": "false"}),
    )

    present: str | None = None

    @property
    def shown_present(self) -> str:
        return without_secret(self.present or "")

    def clean(self) -> dict[str, Any]:
        """Read the present address, since the replaced address is approved, too."""
        values = super().clean() or self.cleaned_data
        try:
            self.present = callback_url.fetch_callback_url(deadline=FORM_CHECK_TIMEOUT)
        except GatewayError:
            self.add_error(
                "url",
                gettext(
                    "The current URL could not be read from the provider. Nothing was prepared. Try again."
                ),
            )
            return values
        if values.get("url") and is_same_address(values["url"], self.present):
            self.add_error("url", gettext("The provider already uses this URL."))
        return values

    def content(self) -> CallbackUrlPayload:
        return CallbackUrlPayload(url=self.cleaned_data["url"], previous=self.present or "")


class CallbackUrlKind(ChangeKind[CallbackUrlPayload]):
    """Sets where webhooks are sent. No one-time code. Confirmed by reading the address back."""

    name = "callback_url"
    label = _("Callback URL")
    plural = _("Callback URL changes")
    letter = "H"
    verb = _("Set callback URL")
    payload_type = CallbackUrlPayload
    form_type = CallbackUrlForm
    excluded_from_bulk = True

    def sentence(self, payload: CallbackUrlPayload) -> str:
        return gettext("Send webhooks to {url}").format(url=_shortened(without_secret(payload.url), 150))

    def recipient(self, payload: CallbackUrlPayload) -> Recipient:
        return Recipient(_shortened(urlsplit(payload.url).netloc, 200), gettext("Callback URL"))

    def facts(self, payload: CallbackUrlPayload) -> Facts:
        return [
            (gettext("New URL"), without_secret(payload.url)),
            (gettext("Current URL"), without_secret(payload.previous) or gettext("Not set")),
        ]

    def initial(self, payload: CallbackUrlPayload) -> dict[str, Any]:
        """The address, unless it is our own, whose secret part only the page for it shows."""
        return {"url": payload.url} if without_secret(payload.url) == payload.url else {}

    def cautions(self, payload: CallbackUrlPayload) -> list[str]:
        if is_own_address(payload.url) is False:
            return [
                gettext(
                    "The new URL does not start with {address}, the address of this installation. "
                    "Another server would receive all webhooks, and this installation none."
                ).format(address=settings.PUBLIC_URL)
            ]
        own = callback_url.own_callback_url()
        if own and is_own_address(payload.url) and not is_same_address(payload.url, own):
            return [
                gettext(
                    "The new URL is at this installation, but is not its callback URL: all webhooks would be "
                    "refused. Compare it with the one shown under Settings, Webhooks."
                )
            ]
        return []

    def send(
        self, gateway: PaymentsGateway, payload: CallbackUrlPayload, otp: SecretStr | None
    ) -> SendReceipt:
        """Set it, if the address that it replaces is still the approved one."""
        _check_url_unchanged(payload)
        return SendReceipt(message=gateway.callbacks.set_url(payload.url))

    def is_done(self, gateway: PaymentsGateway, payload: CallbackUrlPayload) -> bool:
        """Whether the provider reports this address now, in any equivalent notation."""
        return is_same_address(gateway.callbacks.url(), payload.url)


def _check_url_unchanged(payload: CallbackUrlPayload) -> None:
    """Raises NotSentError if the provider's address changed since this was prepared, or cannot be read."""
    try:
        present = callback_url.fetch_callback_url()
    except GatewayError as exc:
        raise NotSentError.of(
            gettext_noop("The current URL could not be read from the provider. Nothing was changed.")
        ) from exc
    if not is_same_address(present, payload.previous):
        raise OutdatedError.of(
            gettext_noop(
                "The URL at the provider changed after this was prepared. The new URL was not set. Check the "
                "current URL."
            )
        )


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
