"""What may be the callback address, and which spellings are the same one."""

import pytest
from django.core.exceptions import ValidationError
from pytest_django import Settings

from backoffice.ledger.callback_url import is_same_address
from backoffice.operations.kinds.callback_url import CallbackUrlPayload, check_public_address
from backoffice.operations.kinds.registry import KINDS
from tests.operations.kinds.callback_urls.steps import AFTER, sample


@pytest.mark.parametrize(
    "url",
    [
        AFTER,
        "https://8.8.8.8/hooks",
        "https://[2001:4860:4860::8888]:8443/hooks",
        "https://xn--bcher-kva.example/hooks?tenant=1",
        "https://pay.example.com.",
        "https://pay.example.com/" + "x" * 2024,
    ],
)
def test_a_public_https_address_is_accepted_everywhere(settings: Settings, url: str) -> None:
    settings.ENVIRONMENT = "production"
    check_public_address(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://pay.example.com/hooks", "Use https"),
        ("ftp://pay.example.com/hooks", "Start with https://"),
        ("pay.example.com/hooks", "Start with https://"),
        ("https:///hooks", "Start with https://"),
        ("https://pay.example.com:0/hooks", "Start with https://"),
        ("https://pay.example.com:99999/hooks", "host or port cannot be read"),
        ("https://[::1/hooks", "host or port cannot be read"),
        ("https://ada:secret@pay.example.com/", "username and password"),
        ("https://pay.example.com/#top", "never sent"),
        ("https://pay.example.com/a b", "without spaces"),
        ("https://pay.example.com\\@10.0.0.1/", "backslashes"),
        ("https://bücher.example/hooks", "xn--"),
        ("https://127.0.0.1/hooks", "private"),
        ("https://localhost/hooks", "private"),
        ("https://localhost./hooks", "private"),
        ("https://shop.localhost/hooks", "private"),
        ("https://intranet/hooks", "private"),
        ("https://printer.local/hooks", "private"),
        ("https://metadata.google.internal/", "private"),
        ("https://10.1.2.3/hooks", "private"),
        ("https://172.16.0.1/hooks", "private"),
        ("https://192.168.1.1/hooks", "private"),
        ("https://169.254.169.254/latest", "private"),
        ("https://100.64.0.1/hooks", "private"),
        ("https://0.0.0.0/hooks", "private"),
        ("https://224.0.0.1/hooks", "private"),
        ("https://255.255.255.255/hooks", "private"),
        ("https://127.1/hooks", "private"),
        ("https://2130706433/hooks", "private"),
        ("https://0x7f000001/hooks", "private"),
        ("https://0177.0.0.1/hooks", "private"),
        ("https://[::1]/hooks", "private"),
        ("https://[::]/hooks", "private"),
        ("https://[fe80::1]/hooks", "private"),
        ("https://[fd00::1]/hooks", "private"),
        ("https://[::ffff:10.0.0.1]/hooks", "private"),
        ("https://[2002:a00:1::]/hooks", "private"),
        ("https://[64:ff9b::a00:1]/hooks", "private"),
    ],
)
@pytest.mark.parametrize("environment", ["staging", "production"])
def test_any_other_address_is_refused_with_the_reason(
    settings: Settings, environment: str, url: str, message: str
) -> None:
    settings.ENVIRONMENT = environment
    with pytest.raises(ValidationError) as refused:
        check_public_address(url)
    assert message in " ".join(refused.value.messages)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000/hooks", "http://localhost/hooks", "https://[::1]/hooks"]
)
def test_loopback_is_accepted_in_the_sandbox_only(settings: Settings, url: str) -> None:
    check_public_address(url)
    settings.ENVIRONMENT = "staging"
    with pytest.raises(ValidationError):
        check_public_address(url)


@pytest.mark.parametrize("url", ["http://pay.example.com/hooks", "https://10.0.0.1/hooks"])
def test_other_hosts_are_checked_in_the_sandbox(url: str) -> None:
    with pytest.raises(ValidationError):
        check_public_address(url)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example", "https://a.example/", True),
        ("https://a.example", "HTTPS://A.Example:443", True),
        ("http://a.example:80/x", "http://a.example/x", True),
        ("https://a.example?x=1", "https://a.example/?x=1", True),
        ("https://a.example/x", "https://a.example/x/", False),
        ("https://a.example/x", "https://a.example/X", False),
        ("https://a.example/?x=1", "https://a.example/?X=1", False),
        ("https://a.example", "http://a.example", False),
        ("https://a.example:80", "https://a.example", False),
        ("https://a.example", "https://b.a.example", False),
        ("https://a.example", "https://a.example@b.example", False),
        ("https://a.example", "https://user@a.example", False),
        ("https://a.example:99999", "https://a.example", False),
        ("", "", True),
        ("", "https://a.example", False),
        ("nonsense", "NONSENSE", False),
    ],
)
def test_equivalent_addresses_are_equal(one: str, other: str, same: bool) -> None:
    assert is_same_address(one, other) is same
    assert is_same_address(other, one) is same


@pytest.mark.parametrize(
    ("public", "warned"),
    [
        ("", False),
        ("https://pay.example.com", False),
        ("https://pay.example.com/webhooks", False),
        ("https://pay.example.com/web", True),
        ("https://countersign.example.com", True),
    ],
)
def test_an_address_that_is_not_ours_is_warned_of(settings: Settings, public: str, warned: bool) -> None:
    settings.PUBLIC_URL = public
    assert bool(KINDS["callback_url"].cautions(sample())) is warned


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("https://pay.example.com/hooks/{secret}/", False),
        ("https://pay.example.com:443/hooks/{secret}/", False),
        ("https://pay.example.com/hooks/{secret}", True),
        ("https://pay.example.com/hooks/{secret}x/", True),
        ("https://pay.example.com/", True),
    ],
)
def test_another_address_of_this_installation_is_warned_of(
    settings: Settings, url: str, warned: bool
) -> None:
    """A mistyped secret part: the page cannot show it, and every webhook would be refused."""
    settings.PUBLIC_URL, settings.WEBHOOK_SECRET = "https://pay.example.com", "s" * 32
    payload = CallbackUrlPayload(url=url.format(secret="s" * 32), previous="")
    cautions = KINDS["callback_url"].cautions(payload)
    assert ["is not its callback URL" in caution for caution in cautions] == [True] * warned
