"""When a key ends, as people read it."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.kinds.api_keys.base import KeyEndPayload, ListedKey, expiry_of
from backoffice.operations.kinds.registry import KINDS
from payments_gateway import KeyInfo
from tests import factories
from tests.operations.kinds.api_keys.steps import CREATE, END
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

SignIn = Callable[[Client, User], Client]


def test_facts_describe_a_key_without_name_or_expiry() -> None:
    payload = KeyEndPayload.model_validate({**END.model_dump(), "name": ""})
    facts = dict(KINDS["api_key_invalidate"].facts(payload))
    assert (facts["API key"], facts["Key expires"]) == ("unnamed", "No expiry")


@pytest.mark.parametrize(
    ("zone", "written"),
    [("Africa/Lagos", "1 Jan 2027, 00:30"), ("America/New_York", "31 Dec 2026, 18:30")],
)
def test_the_expiry_of_a_key_is_shown_in_the_readers_time_zone(zone: str, written: str) -> None:
    ends = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    before = KeyEndPayload.model_validate({**END.model_dump(), "expires": ends.isoformat()})
    listed = ListedKey("0a1b2c3d", "till", "Everything", ends, None, is_in_use=False)
    with timezone.override(zone):
        assert dict(KINDS["api_key_invalidate"].facts(before))["Key expires"] == written
        assert dict(KINDS["api_key_create"].outcome_facts(CREATE, {"expires": ends.isoformat()})) == {
            "Key expires": written
        }
        assert f"expires {written}" in listed.label


def test_ending_a_key_shows_its_expiry_once(sign_in: SignIn, administrator: User) -> None:
    ends = datetime(2026, 12, 31, 23, 30, tzinfo=UTC).isoformat()
    payload = KeyEndPayload.model_validate({**END.model_dump(), "expires": ends})
    operation = factories.prepared_of_kind("api_key_invalidate", payload, administrator)
    page = sign_in(Client(), administrator).get(operation.get_absolute_url()).content.decode()
    assert page.count("<dt>Expires</dt>") == 1
    assert "<dt>Key expires</dt>" in page
    assert "1 Jan 2027, 00:30" in page


def test_an_expiry_of_zero_means_no_expiry(provider: StubProvider) -> None:
    end = datetime(2027, 1, 1, tzinfo=UTC)
    keys = [
        KeyInfo(short_hash="a", is_expirable=flag, expires_at=at)
        for flag, at in [(True, end), (None, end), (False, end), (None, datetime(1970, 1, 1, tzinfo=UTC))]
    ]
    assert [expiry_of(key) for key in keys] == [end, end, None, None]
