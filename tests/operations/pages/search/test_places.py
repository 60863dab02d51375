"""The search page lists the pages that a person may open from anywhere; the command palette offers the same."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from backoffice.accounts.models import User
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import pause
from backoffice.operations.permissions import PAUSE
from tests.operations.steps import text_of
from tests.requirements import opened_by

pytestmark = pytest.mark.django_db

ROLES = ("preparer", "approver", "auditor", "administrator")
NOT_OFFERED = {
    "accounts:second_factor",  # part of signing in, or of an action
    "accounts:sign_in",
    "notifications:preferences",  # a tab of the own account
    *("governance:delegations", "prepare delegation"),  # another tab of it
    "webhooks:own_address",  # needs a fresh second factor; linked from the deliveries
    "notifications:undelivered",  # linked from the System page
    "governance:bootstrap",  # begins on the overview of a new installation
    *(
        "governance:links",
        "governance:start_codes",
    ),  # begin on the overview once there is something to pass on
    "operations:bulk_send",  # begins in the list of operations
    # begin on the page of the approval policies
    *("governance:policy_draft", "governance:policy_new_rule", "governance:policy_lists"),
    *("governance:policy_requirements", "governance:policy_review"),
    *("governance:policy_replay", "governance:policy_try", "prepare approval_policy"),
    *("governance:recipient_files", "prepare recipient_import"),  # begin in the list of recipients
    "operations:payout_files",  # opened as the form of its kind
    "operations:search",  # this page
    "prepare access_review",  # begins on the page with the report
    "prepare resolution",  # begins on the page of an unknown outcome
    "prepare resume",  # during a pause only: below
}


def places(client: Client) -> set[str]:
    listed = text_of(client.get("/search/")).partition('id="places"')[2].partition("</section>")[0]
    return {unescape(link) for link in re.findall(r'href="([^"]+)"', listed)}


def names(patterns: list[URLPattern | URLResolver], prefix: str = "") -> list[str]:
    found = []
    for one in patterns:
        if isinstance(one, URLResolver):
            found += names(one.url_patterns, f"{one.namespace}:" if one.namespace else prefix)
        elif one.name:
            found.append(f"{prefix}{one.name}")
    return found


def addresses() -> dict[str, str]:
    """The address of every page that needs no argument, and of every form that prepares an operation."""
    found = {f"prepare {name}": reverse("operations:prepare", args=[name]) for name in KINDS}
    for name in names(get_resolver().url_patterns):
        try:
            found[name] = reverse(name)
        except NoReverseMatch:
            continue
    return found


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="preparer"))
def test_every_page_that_a_person_may_open_is_offered_and_no_other(
    sign_in: Callable[[Client, User], Client], request: pytest.FixtureRequest, role: str
) -> None:
    client = sign_in(Client(), request.getfixturevalue(role))
    offered = places(client)
    assert [link for link in offered if client.get(link, follow=True).status_code != 200] == []
    missing = {
        name
        for name, address in addresses().items()
        if address not in offered and name not in NOT_OFFERED and is_page(client, address)
    }
    assert missing == set()


def is_page(client: Client, address: str) -> bool:
    answer = client.get(address)
    return answer.status_code == 200 and b'<main id="main"' in answer.content


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="preparer"))
def test_resuming_is_offered_during_a_pause_to_those_who_may(
    sign_in: Callable[[Client, User], Client],
    request: pytest.FixtureRequest,
    administrator: User,
    role: str,
) -> None:
    person = request.getfixturevalue(role)
    client = sign_in(Client(), person)
    assert "/operations/prepare/resume/" not in places(client)
    pause.pause_payments(actor=administrator, reason="A laptop was stolen.")
    pause.clear_pause_cache()
    assert ("/operations/prepare/resume/" in places(client)) == person.has_perm(PAUSE)


def test_results_are_shown_without_the_pages(as_preparer: Client) -> None:
    assert 'id="places"' not in text_of(as_preparer.post("/search/", {"q": "obi"}))
    assert 'id="places"' not in text_of(as_preparer.post("/search/", {"q": "o"}))
