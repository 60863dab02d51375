"""The one seam to the provider: who is asked, how long, and in which profile."""

import re
from pathlib import Path

import pytest
from pytest_django import Settings

from backoffice.core.gateway import OtpMode, gateway, otp_mode, provider_profile
from payments_gateway import ProviderProfile
from payments_gateway.profile.model import PROFILES

pytestmark = pytest.mark.django_db


def test_the_default_deadline_is_the_send_deadline(settings: Settings) -> None:
    settings.SEND_DEADLINE_SECONDS = 7.5
    assert gateway() is gateway(deadline=7.5)
    assert gateway(deadline=2) is not gateway()


def test_clients_are_cached_per_configuration(settings: Settings) -> None:
    first = gateway()
    assert gateway() is first
    settings.GATEWAY_API_USER = "another-merchant"
    assert gateway() is not first


def test_the_default_profile_is_used_unless_a_file_overrides_it(settings: Settings, tmp_path: Path) -> None:
    assert provider_profile() == ProviderProfile()
    file = tmp_path / "profile.toml"
    file.write_text('otp_required = false\notp_type = "otp"\n')
    settings.GATEWAY_PROFILE = str(file)
    assert (provider_profile().otp_required, provider_profile().otp_type) == (False, "otp")


def test_a_named_profile_is_used_and_a_file_may_start_from_it(settings: Settings, tmp_path: Path) -> None:
    for name, profile in PROFILES.items():
        settings.GATEWAY_PROFILE = name
        assert provider_profile() == profile
    assert provider_profile().service_username_member == "coinprofileUsername"
    file = tmp_path / "profile.toml"
    file.write_text('profile = "published"\notp_required = true\n')
    settings.GATEWAY_PROFILE = str(file)
    assert provider_profile() == PROFILES["published"].overridden({"otp_required": True})


@pytest.mark.parametrize("line", ['profile = "publisched"', "profile = 1", 'profile = ["published"]'])
def test_a_file_that_starts_from_no_known_profile_is_refused(
    settings: Settings, tmp_path: Path, line: str
) -> None:
    file = tmp_path / "profile.toml"
    file.write_text(line)
    settings.GATEWAY_PROFILE = str(file)
    with pytest.raises(ValueError, match="profile: must be one of specification, published"):
        provider_profile()


def test_a_misspelt_profile_is_refused_by_name(settings: Settings) -> None:
    settings.GATEWAY_PROFILE = "publisched"
    with pytest.raises(
        ValueError, match=r"publisched: neither a profile \(specification, published\) nor a file"
    ):
        provider_profile()


@pytest.mark.parametrize("text", [b"= broken", b"\xff", b"frst_page = 1", None])
def test_an_invalid_profile_is_reported_with_its_file(
    settings: Settings, tmp_path: Path, text: bytes | None
) -> None:
    file = tmp_path / "profile.toml"
    if text is not None:
        file.write_bytes(text)
    settings.GATEWAY_PROFILE = str(file)
    with pytest.raises(ValueError, match=f"^COUNTERSIGN_GATEWAY_PROFILE, {re.escape(str(file))}: "):
        provider_profile()


def test_an_invalid_profile_prevents_startup(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "profile.toml"
    file.write_text('otp_type = "sms"\n')
    settings.GATEWAY_PROFILE = str(file)
    with pytest.raises(ValueError, match="otp_type"):
        gateway()


@pytest.mark.parametrize(
    ("profile", "configured", "mode"),
    [
        ("specification", "", OtpMode.ENTERED),
        ("published", "", OtpMode.NOT_ASKED),
        ("specification", "not_asked", OtpMode.NOT_ASKED),
        ("published", "entered", OtpMode.ENTERED),
        ("published", "managed", OtpMode.MANAGED),
    ],
)
def test_one_time_codes_are_obtained_as_configured_or_by_the_profile(
    settings: Settings, profile: str, configured: str, mode: OtpMode
) -> None:
    settings.GATEWAY_PROFILE, settings.OTP_MODE = profile, configured
    assert otp_mode() == mode
    assert provider_profile().otp_required == (mode != OtpMode.NOT_ASKED)


def test_codes_made_from_the_authenticator_secret_are_sent_as_totp(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "profile.toml"
    file.write_text('otp_type = "otp"\n')
    settings.GATEWAY_PROFILE, settings.OTP_MODE = str(file), "managed"
    assert provider_profile().otp_type == "totp"
