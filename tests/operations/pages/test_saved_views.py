"""Filters saved under a name: one's own, shared ones, and what becomes of them."""

import re
from datetime import date
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.core.web.forms import DatePreset, preset_days
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.saved_views import SavedView
from backoffice.operations.pages.saved_views import MAX_SAVED_VIEWS
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db

VIEWS = "/operations/views/"
DONE_IN_NAIRA = f"{VIEWS}?tab=done&currency=NGN&text=50%25+%26+%C3%A9"


def save(client: Client, name: str, address: str = DONE_IN_NAIRA, **more: str) -> Any:
    return client.post(address, {"name": name, **more})


def saved(*names: str) -> list[SavedView]:
    return [SavedView.objects.get(name=name) for name in names]


def names(client: Client) -> list[str]:
    return [one.name for one in client.get("/operations/").context["saved"]]


def change(client: Client, saved: SavedView, action: str, **typed: str) -> Any:
    return client.post(f"{VIEWS}{saved.pk}/{action}/", typed, follow=True)


def test_the_list_offers_to_save_its_filters_as_a_view(as_preparer: Client, operation: Operation) -> None:
    assert "Save view" not in text_of(as_preparer.get("/operations/?tab=open"))
    html = text_of(as_preparer.get("/operations/?tab=open&currency=NGN&cursor=x"))
    assert f'href="{VIEWS}?tab=open&amp;currency=NGN"' in html


def test_the_form_describes_the_filters(as_preparer: Client) -> None:
    address = f"{VIEWS}?tab=done&kind=withdrawal&mine=on&since=2026-03-01"
    assert "From: 1 Mar 2026 · Closed · Withdrawal · Prepared by me" in text_of(as_preparer.get(address))


def test_a_saved_view_opens_unchanged(as_preparer: Client) -> None:
    answer = save(as_preparer, "Naira, done")
    assert answer.status_code == 302
    opened = urlsplit(answer["Location"])
    assert opened.path == "/operations/"
    assert parse_qs(opened.query) == {"tab": ["done"], "currency": ["NGN"], "text": ["50% & é"]}
    html = text_of(as_preparer.get(answer["Location"]))
    assert "View “Naira, done” saved." in html
    assert names(as_preparer) == ["Naira, done"]


@pytest.mark.parametrize("preset", DatePreset)
def test_a_saved_preset_moves_with_the_calendar(
    as_preparer: Client, monkeypatch: pytest.MonkeyPatch, preset: DatePreset
) -> None:
    monkeypatch.setattr(timezone, "localdate", lambda: date(2026, 3, 18))
    first, last = preset_days(preset)
    address = f"{VIEWS}?tab=done&since={first}&until={last}"
    offered = text_of(as_preparer.get(address))
    assert f'<option value="{preset}" selected>Update the period every day: {preset.label}' in offered
    save(as_preparer, "Moving", address, preset=preset)
    save(as_preparer, "Fixed", address)
    monkeypatch.setattr(timezone, "localdate", lambda: date(2026, 7, 2))
    moving, fixed = (
        dict(parse_qsl(urlsplit(view.get_absolute_url()).query)) for view in saved("Moving", "Fixed")
    )
    now = preset_days(preset)
    assert moving == {"tab": "done", "since": str(now[0]), "until": str(now[1])}
    assert fixed == {"tab": "done", "since": str(first), "until": str(last)}


def test_on_the_first_day_of_a_month_a_person_chooses_which_period_moves(
    as_preparer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "localdate", lambda: date(2026, 12, 1))
    address = f"{VIEWS}?since=2026-12-01&until=2026-12-01"
    html = text_of(as_preparer.get(address))
    assert "Update the period every day: Today" in html
    save(as_preparer, "The month", address, preset=DatePreset.THIS_MONTH)
    monkeypatch.setattr(timezone, "localdate", lambda: date(2026, 12, 20))
    [view] = saved("The month")
    assert view.get_absolute_url().endswith("?since=2026-12-01&until=2026-12-20")


def test_other_days_are_saved_as_they_are(as_preparer: Client) -> None:
    assert "Update the period every day" not in text_of(as_preparer.get(f"{VIEWS}?since=2026-03-01"))


def test_a_private_view_is_visible_to_its_owner_and_a_shared_one_to_everyone(
    as_preparer: Client, as_approver: Client
) -> None:
    save(as_preparer, "Mine")
    save(as_preparer, "Ours", is_shared="on")
    assert names(as_preparer) == ["Mine", "Ours"]
    assert names(as_approver) == ["Ours"]
    html = text_of(as_approver.get(VIEWS))
    assert "Tunde Bello" in html
    assert "/rename/" not in html


def test_shared_views_end_with_their_owner(as_preparer: Client, as_approver: Client, preparer: User) -> None:
    save(as_preparer, "Ours", is_shared="on")
    User.objects.filter(pk=preparer.pk).update(is_active=False)
    assert names(as_approver) == []


def test_a_view_name_is_unique_per_user(as_preparer: Client, as_approver: Client) -> None:
    save(as_preparer, "Naira")
    again = save(as_preparer, "Naira", f"{VIEWS}?currency=USD")
    assert again.status_code == 422
    assert "You already have a view named “Naira”" in text_of(again)
    assert save(as_approver, "Naira").status_code == 302
    assert SavedView.objects.filter(name="Naira").count() == 2


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("", DONE_IN_NAIRA),
        ("x" * 61, DONE_IN_NAIRA),
        ("Nothing", VIEWS),
        ("Nonsense", f"{VIEWS}?status=lost"),
    ],
)
def test_an_invalid_name_or_filter_is_not_saved(as_preparer: Client, name: str, address: str) -> None:
    assert save(as_preparer, name, address).status_code == 422
    assert not SavedView.objects.exists()


def test_the_number_of_views_per_user_is_limited(as_preparer: Client, preparer: User) -> None:
    SavedView.objects.bulk_create(
        SavedView(person=preparer, name=f"{number}", filters={"tab": "done"})
        for number in range(MAX_SAVED_VIEWS)
    )
    refused = save(as_preparer, "One more")
    assert refused.status_code == 422
    assert "Delete one" in text_of(refused)


def test_a_view_is_renamed_shared_and_deleted(as_preparer: Client, as_approver: Client) -> None:
    save(as_preparer, "Before")
    saved = SavedView.objects.get()
    change(as_preparer, saved, "rename", name="After", is_shared="on")
    assert names(as_approver) == ["After"]
    change(as_preparer, saved, "delete")
    assert names(as_preparer) == []


def test_an_empty_or_taken_name_is_refused(as_preparer: Client) -> None:
    save(as_preparer, "One")
    save(as_preparer, "Two")
    two = SavedView.objects.get(name="Two")
    for typed, message in (
        ("One", "You already have a view named “One”"),
        (" ", "Enter a value."),
        ("x" * 61, "at most 60 characters"),
    ):
        answer = change(as_preparer, two, "rename", name=typed, is_shared="on")
        assert answer.status_code == 422
        [form] = [form for one, _, form in answer.context["saved"] if one == two]
        assert message in " ".join(form.errors["name"])
        assert (form["name"].value(), form["is_shared"].value()) == (typed, True)
        assert f'id="view_{two.pk}_name_error"' in text_of(answer)
    assert names(as_preparer) == ["One", "Two"]


def test_each_form_on_the_views_page_has_unique_labels(as_preparer: Client) -> None:
    save(as_preparer, "One")
    save(as_preparer, "Two")
    ids = re.findall(r' id="([^"]+)"', text_of(as_preparer.get(DONE_IN_NAIRA)))
    assert len(ids) == len(set(ids))


def test_a_view_is_changed_by_its_owner_only(as_preparer: Client, as_approver: Client) -> None:
    save(as_preparer, "Ours", is_shared="on")
    saved = SavedView.objects.get()
    assert change(as_approver, saved, "rename", name="Theirs").status_code == 404
    change(as_approver, saved, "delete")
    assert names(as_preparer) == ["Ours"]


def test_an_outdated_view_is_reported_and_can_be_deleted(as_preparer: Client, preparer: User) -> None:
    saved = SavedView.objects.create(person=preparer, name="Lottery", filters={"kind": "lottery"})
    assert "No longer valid in this version" in text_of(as_preparer.get(VIEWS))
    assert as_preparer.get(saved.get_absolute_url()).status_code == 422
    change(as_preparer, saved, "delete")
    assert not SavedView.objects.exists()


def test_the_views_page_takes_six_queries(
    as_approver: Client, preparer: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    SavedView.objects.bulk_create(
        SavedView(person=preparer, name=f"{n}", filters={"tab": "done"}, is_shared=True) for n in range(5)
    )
    with django_assert_max_num_queries(6):
        assert len(as_approver.get(VIEWS).context["saved"]) == 5
