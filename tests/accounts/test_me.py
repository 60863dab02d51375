"""My account: what it shows and what it keeps."""

import gzip

import pytest
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import User
from tests.accounts import steps

pytestmark = pytest.mark.django_db
ME = "/account/"


def test_the_page_is_small_and_says_how_the_person_signs_in(signed_in: Client, maker: User) -> None:
    steps.recovery_codes(maker)
    page = signed_in.get(ME)
    assert len(gzip.compress(page.content)) <= 14_000
    text = page.content.decode()
    assert all(words in text for words in ("Tunde Bello", maker.email, "10 of 10 unused", "this session"))


def test_few_recovery_codes_left_are_pointed_out(signed_in: Client) -> None:
    assert "few left" in signed_in.get(ME).content.decode()


def test_time_zone_and_theme_are_kept_and_shown(signed_in: Client, maker: User) -> None:
    typed = {"time_zone": "Asia/Tokyo", "theme": "dark"}
    page = signed_in.post(reverse("accounts:preferences"), typed, follow=True).content.decode()
    assert "Your time zone and theme are saved" in page
    assert 'data-theme="dark"' in page
    assert " JST" in page
    maker.refresh_from_db()
    assert (maker.time_zone, maker.theme) == ("Asia/Tokyo", "dark")


@pytest.mark.parametrize(
    ("change", "field"),
    [({"time_zone": "Mars/Olympus"}, "time_zone"), ({"theme": "pink"}, "theme"), ({"theme": ""}, "theme")],
)
def test_a_choice_that_does_not_exist_is_refused_beside_its_field(
    signed_in: Client, maker: User, change: dict[str, str], field: str
) -> None:
    answer = signed_in.post(reverse("accounts:preferences"), {"time_zone": "UTC", "theme": "dark", **change})
    assert answer.status_code == 422
    assert answer.context["form"].errors[field]
    maker.refresh_from_db()
    assert (maker.time_zone, maker.theme) == ("Africa/Lagos", "auto")


@pytest.mark.parametrize("name", ["sign_in", "second_factor", "enrol", "recovery_codes", "me", "password"])
def test_no_page_holds_what_the_content_policy_forbids(signed_in: Client, name: str) -> None:
    page = signed_in.get(reverse(f"accounts:{name}"))
    text = page.content.decode()
    assert "unsafe" not in page["Content-Security-Policy"]
    assert not [mark for mark in (" style=", "<style", " onclick=", "javascript:") if mark in text]
    assert text.count("<script") == text.count("<script src=")
