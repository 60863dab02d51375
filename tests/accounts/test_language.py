"""In which language a page comes."""

from datetime import date
from decimal import Decimal

import pytest
from django.forms import DateInput
from django.template import Context, Template
from django.test import Client
from django.urls import reverse
from django.utils import translation

from backoffice.accounts.models import User

ME, SIGN_IN = "accounts:my_account", "accounts:sign_in"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("accepted", "expected"),
    [("fr", "fr"), ("fr-CI, en;q=0.5", "fr"), ("de, en;q=0.5", "en"), ("de", "en"), ("", "en"), ("*", "en")],
)
def test_pages_before_sign_in_follow_the_browser(client: Client, accepted: str, expected: str) -> None:
    page = client.get(reverse(SIGN_IN), headers={"Accept-Language": accepted})
    assert f'<html lang="{expected}"' in page.content.decode()
    assert page.headers["Content-Language"] == expected


@pytest.mark.parametrize(("chosen", "expected"), [("auto", "fr"), ("en", "en"), ("fr", "fr")])
def test_a_persons_choice_precedes_the_browsers(
    signed_in: Client, preparer: User, chosen: str, expected: str
) -> None:
    User.objects.filter(pk=preparer.pk).update(language=chosen)
    page = signed_in.get(reverse(ME), headers={"Accept-Language": "fr"})
    assert f'<html lang="{expected}"' in page.content.decode()


@pytest.mark.parametrize("language", ["en", "fr"])
def test_numbers_and_dates_of_forms_have_one_form_in_every_language(language: str) -> None:
    with translation.override(language):
        shown = Template("{{ amount }} {{ rate|floatformat:2 }}").render(
            Context({"amount": Decimal("1234.5"), "rate": 0.25})
        )
        assert shown == "1234.5 0.25"
        assert 'value="2026-11-20"' in DateInput().render("since", date(2026, 11, 20))
