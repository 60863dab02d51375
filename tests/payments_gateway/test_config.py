"""A configuration that would not be safe is refused before anything is sent."""

from dataclasses import FrozenInstanceError

import pytest
from pydantic import SecretStr

from payments_gateway import GatewayConfig, ProviderProfile
from payments_gateway.config import is_loopback
from tests.payments_gateway.conftest import config

SECTIONS = {
    "Resources",
    "States and transitions",
    "Endpoints",
    "Authentication",
    "Events",
    "Errors",
    "nowhere: beyond the specification",
}


@pytest.mark.parametrize(
    "url",
    [
        "https://service.example/v2",
        "http://127.0.0.1:8001/v2",
        "http://127.8.8.8/v2",
        "http://localhost:8001/v2",
        "http://[::1]:8001/v2/",
    ],
)
def test_https_or_loopback_is_accepted(url: str) -> None:
    assert config(url).base_url == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://service.example/v2",
        "http://10.0.0.1/v2",
        "http://127.0.0.1.example/v2",
        "http://localhost.example/v2",
        "http://0.0.0.0/v2",
        "ftp://127.0.0.1/v2",
        "//127.0.0.1/v2",
        "127.0.0.1/v2",
        "https:///v2",
        "https://service.example/v2?a=1",
        "https://service.example/v2#a",
        "",
    ],
)
@pytest.mark.parametrize("name", ["base_url", "base_url_v4"])
def test_any_other_address_is_refused(name: str, url: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        config("https://service.example/v2", **{name: url})


@pytest.mark.parametrize("url", ["https://me:canary@service.example/v2", "http://canary@127.0.0.1/v2"])
def test_credentials_in_an_address_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="credentials") as caught:
        config(url)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("key", ["", " ", "canary\r\nX-Evil: 1", "canary ", "canaryé", "canary\x00"])
def test_a_key_invalid_in_a_header_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="api_key") as caught:
        config("https://service.example/v2", api_key=SecretStr(key))
    assert "canary" not in str(caught.value)


def test_a_plain_text_key_is_refused() -> None:
    with pytest.raises(TypeError, match="SecretStr"):
        config("https://service.example/v2", api_key="canary")


@pytest.mark.parametrize("name", ["connect_timeout", "deadline", "tries", "response_limit"])
def test_limits_are_validated(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        config("https://service.example/v2", **{name: 0})


def test_missing_certificate_files_are_refused() -> None:
    with pytest.raises(ValueError, match="ca_file"):
        config("https://service.example/v2", ca_file="no-such-file.pem")


def test_default_values() -> None:
    settings = GatewayConfig(
        base_url="https://a.example/v2",
        base_url_v4="https://a.example/v4",
        api_key=SecretStr("k"),
        api_user="u",
    )
    assert (settings.connect_timeout, settings.deadline, settings.tries) == (5, 30, 3)
    assert (settings.user_version, settings.profile) == ("v2", ProviderProfile())
    with pytest.raises(FrozenInstanceError):
        settings.__setattr__("api_user", "other")


def test_overrides_use_json_types() -> None:
    profile = ProviderProfile().overridden(
        {
            "uncertain_statuses": {"418": "teapots lie"},
            "withdrawal_id_paths": [["a", "b"]],
            "success_statuses": [200],
            "detail_members": [],
            "key_list_paths": [[], ["keys"]],
            "retry_statuses": [503],
        }
    )
    assert dict(profile.uncertain_statuses) == {418: "teapots lie"}
    assert profile.withdrawal_id_paths == (("a", "b"),)
    assert (profile.success_statuses, profile.detail_members) == ((200,), ())
    assert profile.key_list_paths == ((), ("keys",))
    assert profile.retry_statuses == (503,)


def test_every_open_point_is_explained() -> None:
    for point in ProviderProfile().open_points():
        assert point.confidence in {"sure", "likely", "hint", "unknown"}, point.name
        assert len(point.why) > 10, point.name
        assert point.where.split(",")[0] in SECTIONS, point.name


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2", "::1", "[::1]"])
def test_loopback_addresses_are_recognised(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [None, "", "*", ".localhost", "::", "127.0.0.1.service.example", "10.0.0.1", "LOCALHOST.example"],
)
def test_other_addresses_are_not_loopback(host: str | None) -> None:
    assert not is_loopback(host)
