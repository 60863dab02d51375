"""Settings, Approval policies: in effect, proposing in forms, old beside new, replay, and an operation to try."""

import csv
import gzip
import io
import re
import time
import uuid
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.groups import rename_group
from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.governance import urls
from backoffice.governance.policy_replay import Change, replay
from backoffice.operations.errors import AcknowledgementMissingError, RecipientNotApprovedError
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from backoffice.policies.models import PolicyVersion
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.operations.kinds.samples import SAMPLES
from tests.policies.versions import NGN, document, group, levels, of_group, proposed, put_in_effect
from tests.recipients import registered

pytestmark = pytest.mark.django_db(transaction=True)

SETTINGS = "/settings/policies/"
DRAFT = f"{SETTINGS}draft/"
REVIEW, LISTS = f"{DRAFT}review/", f"{DRAFT}lists/"
REASON = "The board asked for it"
RULE = {"kinds": ["withdrawal"], "currencies": "NGN", "above": "5,000,000", "recipient": "new"}


@pytest.fixture
def other_administrator(db: None) -> User:
    return factories.person("Bisi Ade", Role.ADMINISTRATOR)


@pytest.fixture
def as_administrator(administrator: User) -> Client:
    return factories.sign_in(Client(), administrator)


def text(response: Any) -> str:
    spaced = response.content.decode().replace("<", " <").replace("&#x27;", "'")
    return " ".join(strip_tags(spaced).split()).replace(" .", ".")


def page(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200, url
    return text(response)


def submit(client: Client, **typed: str) -> Any:
    """Submit the draft as its review shows it."""
    context = client.get(REVIEW).context
    reviewed = {"submission": str(context["submission"]), "reviewed": context["reviewed"]}
    return client.post(f"{DRAFT}propose/", reviewed | {"reason": REASON} | typed, follow=True)


def proposed_in_forms(client: Client) -> Operation:
    """The draft as it waits for approval, confirmed if it refuses payments without exception."""
    response = submit(client, confirmed="on")
    found = Operation.objects.filter(kind="approval_policy").first()
    assert found is not None, text(response)
    return found


def test_the_rules_in_effect_are_shown_as_sentences(as_administrator: Client, auditor: User) -> None:
    shown = page(as_administrator, SETTINGS)
    assert "All operations above NGN 10,000,000.00 need 2 other people." in shown
    assert "Everything else needs 1 other person." in shown
    put_in_effect({"when": {"kinds": ["transfer"]}, "refuse": "No transfers"})
    shown = page(factories.sign_in(Client(), auditor), SETTINGS)
    assert "Version 1, in effect" in shown
    assert "Transfers are refused: “No transfers”." in shown
    assert "Propose new version" not in shown
    assert "Removed" not in page(as_administrator, f"{SETTINGS}versions/1/")


@pytest.mark.parametrize("number", [0, 2, 10**30])
def test_a_version_that_does_not_exist_is_not_found(as_administrator: Client, number: int) -> None:
    put_in_effect({"levels": [{"needed": 1}]})
    assert as_administrator.get(f"{SETTINGS}versions/{number}/").status_code == 404


def test_an_altered_version_is_named_as_such(as_administrator: Client) -> None:
    put_in_effect({"levels": [{"needed": 1}]}, {"levels": [{"needed": 2}]})
    put_in_effect({"levels": [{"needed": 3}]})
    with lifted(connection):
        PolicyVersion.objects.filter(number=1).update(document={"rules": "none"})
    assert "This version was altered" in page(as_administrator, f"{SETTINGS}versions/1/")
    following = page(as_administrator, f"{SETTINGS}versions/2/")
    assert "The previous version was altered" in following
    assert "This version was altered" not in following


def test_people_of_the_same_name_are_told_apart_by_their_address(as_administrator: Client) -> None:
    for address in ("one@example.com", "two@example.com"):
        factories.person("Same Name", Role.APPROVER, email=address)
    shown = page(as_administrator, f"{DRAFT}rules/new/")
    assert "Same Name, one@example.com" in shown
    assert "Same Name, two@example.com" in shown
    assert "Zainab Musa" in shown
    assert "Zainab Musa," not in shown


ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
#                           method  preparer approver auditor administrator outsider
ANSWERS = {
    "policies":               ("get",  200, 200, 200, 200, 403),
    "policy_version":         ("get",  200, 200, 200, 200, 403),
    "policy_try":             ("get",  200, 200, 200, 200, 403),
    "policy_draft":           ("get",  403, 403, 403, 200, 403),
    "policy_new_rule":        ("get",  403, 403, 403, 200, 403),
    "policy_rule":            ("get",  403, 403, 403, 200, 403),
    "policy_move_rule":       ("post", 403, 403, 403, 302, 403),
    "policy_lists":           ("get",  403, 403, 403, 200, 403),
    "policy_requirements":    ("get",  403, 403, 403, 200, 403),
    "policy_copy":            ("post", 403, 403, 403, 302, 403),
    "policy_discard":         ("post", 403, 403, 403, 302, 403),
    "policy_review":          ("get",  403, 403, 403, 200, 403),
    "policy_propose":         ("post", 403, 403, 403, 422, 403),
    "policy_replay":          ("get",  403, 403, 403, 200, 403),
    "policy_proposal":        ("get",  200, 200, 200, 200, 403),
    "policy_proposal_replay": ("get",  403, 403, 200, 200, 403),
}  # fmt: skip


def test_the_table_has_every_address() -> None:
    assert set(ANSWERS) == {pattern.name for pattern in urls.urlpatterns if "polic" in str(pattern.name)}


@pytest.mark.parametrize("role", ROLES)
def test_every_role_gets_its_answer(role: str, request: pytest.FixtureRequest, administrator: User) -> None:
    put_in_effect({"when": {"kinds": ["resume"]}, "levels": [{"needed": 5}]})
    operation = proposed(administrator, {"levels": [{"needed": 1}]}, replaces=1)
    client = factories.sign_in(Client(), request.getfixturevalue(role))
    of_proposal = ("policy_proposal", "policy_proposal_replay", "policy_copy")
    keys: dict[str, list[Any]] = {name: [operation.pk] for name in of_proposal}
    keys |= {name: [1] for name in ("policy_version", "policy_rule", "policy_move_rule")}
    for name, (method, *answers) in ANSWERS.items():
        answer = getattr(client, str(method))(reverse(f"governance:{name}", args=keys.get(name, [])))
        assert answer.status_code == answers[ROLES.index(role)], name


def test_a_version_is_proposed_in_forms_and_approved_by_another_administrator(
    as_administrator: Client, approver: User, second_approver: User, other_administrator: User, preparer: User
) -> None:
    third = factories.person("Ngozi Eze", Role.APPROVER)
    treasury, directors = group("Treasury", approver), group("Directors", second_approver, third)
    values = {
        "needed1": "1",
        "of1": f"group:{treasury.pk}",
        "needed2": "2",
        "of2": f"group:{directors.pk}",
    }
    assert as_administrator.post(f"{DRAFT}rules/new/", RULE | values).status_code == 302
    sentence = "Withdrawals above NGN 5,000,000.00 to new recipients need 1 of Treasury, then 2 of Directors"
    shown = page(as_administrator, DRAFT)
    assert sentence in shown
    assert "Added" in shown
    number = len(document().rules) + 5
    as_administrator.post(f"{DRAFT}rules/{number}/move/", {"to": "up"})
    operation = proposed_in_forms(as_administrator)
    other = factories.sign_in(Client(), other_administrator)
    assert sentence in page(other, operation.get_absolute_url())
    assert sentence in page(other, f"{SETTINGS}proposals/{operation.pk}/")
    assert "Replay" in page(other, f"{SETTINGS}proposals/{operation.pk}/replay/")
    factories.approve(operation, other_administrator)
    assert PolicyVersion.objects.get().operation == operation.pk
    assert factories.prepared(preparer, amount=Decimal(6_000_000)).approvals_needed == 3


def test_rules_are_edited_moved_and_removed(as_administrator: Client) -> None:
    put_in_effect(
        *({"when": {"kinds": [kind]}, "levels": [{"needed": 2}]} for kind in ("transfer", "withdrawal"))
    )
    as_administrator.post(f"{DRAFT}rules/2/move/", {"to": "up"})
    shown = page(as_administrator, DRAFT)
    assert shown.index("Withdrawals need") < shown.index("Transfers need")
    assert as_administrator.get(f"{DRAFT}rules/1/").status_code == 200
    as_administrator.post(f"{DRAFT}rules/1/", {"kinds": ["conversion"], "needed1": "3"})
    as_administrator.post(f"{DRAFT}rules/2/move/", {"to": "remove"})
    shown = page(as_administrator, DRAFT)
    assert "Conversions need 3 other people" in shown
    assert "This rule cannot be removed." in shown
    assert as_administrator.post(f"{DRAFT}rules/3/move/", {"to": "up"}).status_code == 404
    as_administrator.post(f"{DRAFT}discard/")
    assert "No rule differs." in page(as_administrator, DRAFT)


def test_a_page_of_the_draft_overwrites_nothing_that_was_changed_in_another_window(
    as_administrator: Client,
) -> None:
    for kind in ("transfer", "withdrawal", "conversion"):
        as_administrator.post(f"{DRAFT}rules/new/", {"kinds": [kind], "needed1": "2"})
    first_rule, rules, requirements, lists = (
        {"shown": as_administrator.get(f"{DRAFT}{part}").context["shown"]}
        for part in ("rules/1/", "", "recipients/", "lists/")
    )
    as_administrator.post(f"{DRAFT}rules/1/move/", {"to": "down", **rules})
    as_administrator.post(f"{DRAFT}recipients/", {"approved_only": ["transfer"], **requirements})
    as_administrator.post(LISTS, {"time_zone": "Asia/Tokyo", **lists})
    before = page(as_administrator, DRAFT)
    for stale in ("rules/1/move/", "rules/3/move/"):
        answer = as_administrator.post(DRAFT + stale, {"to": "remove", **rules}, follow=True)
        assert "The draft was changed in another window. Nothing was changed now." in text(answer)
    for stale, typed in (
        ("rules/1/", {**first_rule, "needed1": "3"}),
        ("recipients/", requirements),
        ("lists/", {**lists, "time_zone": "Africa/Lagos"}),
    ):
        for _ in range(2):
            answer = as_administrator.post(DRAFT + stale, typed)
            assert answer.status_code == 422
            assert "The draft was changed in another window after this page was opened." in text(answer)
            assert answer.context["shown"] == typed["shown"]
    assert page(as_administrator, DRAFT) == before


@pytest.mark.parametrize("move", [{}, {"to": ""}, {"to": "left"}, {"to": "Remove"}])
def test_a_rule_is_removed_by_the_button_for_it_only(as_administrator: Client, move: dict[str, str]) -> None:
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["transfer"], "needed1": "2"})
    before = page(as_administrator, DRAFT)
    assert as_administrator.post(f"{DRAFT}rules/1/move/", move).status_code == 302
    assert page(as_administrator, DRAFT) == before
    assert "Transfers need 2 other people" in before


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kinds": ["withdrawal"]}, "Enter how many must approve, or a reason to refuse, not both."),
        ({"needed1": "1", "refuse": "No"}, "Enter how many must approve, or a reason to refuse, not both."),
        ({"needed1": "0"}, "Enter 1 or more."),
        ({"needed1": "1", "above": "5"}, "An amount or a total needs exactly one currency."),
        ({"needed1": "1", "currencies": "NGN", "above": "five"}, "Enter an amount, such as 5,000,000."),
        ({"needed1": "2", "of1": "named"}, "Select at least one person."),
        ({"needed1": "1", "hours": "inside"}, "Select at least one weekday."),
        ({"needed1": "1", "currencies": "NGM"}, "Unknown currency: NGM. Known: NGN, USD, USDT."),
        ({"needed1": "1", "networks": "TRON"}, "Unknown network: TRON."),
        ({"refuse": "Night", "start": "22:00"}, "within or outside these days and hours"),
        (
            {"refuse": "Weekend", "weekdays": ["0", "1", "2", "3", "4"]},
            "within or outside these days and hours",
        ),
        ({"needed1": "1", "of2": f"role:{Role.APPROVER}"}, "Enter how many must approve."),
        ({"of1": f"role:{Role.APPROVER}"}, "Enter how many must approve."),
        ({"needed2": "1"}, "Enter how many must approve."),
        (
            {"needed1": "1", "hours": "inside", "weekdays": ["0"], "start": "22:00", "end": "22:00"},
            "“From” and “To” are the same time.",
        ),
    ],
)
def test_an_invalid_rule_is_explained_and_nothing_typed_is_lost(
    as_administrator: Client, values: dict[str, Any], message: str
) -> None:
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["transfer"], "needed1": "2"})
    response = as_administrator.post(f"{DRAFT}rules/new/", {"networks": "trc20", **values})
    assert response.status_code == 422
    assert message in text(response)
    assert f'value="{values.get("networks", "trc20")}"' in response.content.decode()
    assert "Transfers need 2 other people" in page(as_administrator, DRAFT)


def test_an_error_is_beside_its_field_and_amounts_are_shown_with_separators(as_administrator: Client) -> None:
    typed = {"needed1": "1", "currencies": "NGN, USD", "above": "10000000", "up_to": "20000000.5"}
    response = as_administrator.post(f"{DRAFT}rules/new/", typed)
    assert response.context["form"].errors == {
        "currencies": ["An amount or a total needs exactly one currency."]
    }
    assert response.context["form"]["above"].value() == "10,000,000.00"
    assert response.context["form"]["up_to"].value() == "20,000,000.50"
    as_administrator.post(f"{DRAFT}rules/new/", {**typed, "currencies": "NGN", "position": "1"})
    form = as_administrator.get(f"{DRAFT}rules/1/").content.decode()
    assert 'name="above" value="10,000,000.00"' in form
    shown = as_administrator.get(f"{SETTINGS}try/?kind=withdrawal&amount=10000000&currency=NGN")
    assert 'name="amount" value="10,000,000.00"' in shown.content.decode()


def test_several_rules_are_added_one_after_the_other(as_administrator: Client) -> None:
    new = f"{DRAFT}rules/new/"
    assert "Propose new version" in page(as_administrator, SETTINGS)
    form = as_administrator.get(new).content.decode()
    assert 'name="needed1" value="1"' in form
    assert form.index("Withdrawals") < form.index("Changes") < form.index("Resumptions")
    response = as_administrator.post(new, {"kinds": ["transfer"], "needed1": "1", "again": "1"})
    assert response.headers["Location"] == new
    assert "The rule was added to your draft." in page(as_administrator, new)
    assert "Continue draft: 1 rule differs" in page(as_administrator, SETTINGS)
    as_administrator.post(new, {"kinds": ["withdrawal"], "needed1": "1"})
    assert "Continue draft: 2 rules differ" in page(as_administrator, SETTINGS)
    assert reverse("governance:policy_draft") in as_administrator.get("/settings/team/").content.decode()
    as_administrator.post(f"{DRAFT}discard/")
    assert "Continue draft" not in page(as_administrator, SETTINGS)


def test_people_who_are_selected_without_being_asked_for_are_not_ignored(
    as_administrator: Client, approver: User
) -> None:
    response = as_administrator.post(f"{DRAFT}rules/new/", {"needed1": "1", "named1": [str(approver.pk)]})
    assert response.status_code == 422
    assert "Select “Named people”, or no people." in text(response)


def test_a_refused_proposal_keeps_the_draft(as_administrator: Client, approver: User) -> None:
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["withdrawal"], "needed1": "2"})
    problem = "Rule 1 cannot be satisfied for Conversions: too few people can give 2 other people."
    shown = page(as_administrator, REVIEW)
    assert f"This version cannot be submitted. {problem}" in shown
    assert ("Submit for approval" in shown, "Edit draft" in shown) == (False, True)
    assert "then submit for approval" not in shown
    assert "Nothing was changed." not in shown
    response = submit(as_administrator)
    assert response.status_code == 422
    assert f"{problem} Nothing was changed." in text(response)
    assert "cannot be submitted" not in text(response)
    assert REASON in text(response), "what was typed is kept"
    assert not Operation.objects.exists()
    assert "Withdrawals need 2 other people" in page(as_administrator, DRAFT)


def test_a_version_that_can_be_submitted_is_offered_for_approval(
    as_administrator: Client, other_administrator: User, approver: User
) -> None:
    factories.person("Kola Ade", Role.APPROVER)
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["withdrawal"], "needed1": "1"})
    assert "Submit for approval" in page(as_administrator, REVIEW)
    assert "Submit for approval" in text(submit(as_administrator, reason="")), "a reason can be added"


def test_the_review_says_what_prevents_the_submission_without_an_outcome(
    as_administrator: Client, other_administrator: User, approver: User
) -> None:
    def problem() -> str:
        return str(as_administrator.get(REVIEW).context["problem"])

    put_in_effect(levels((1, {})))
    cannot = "This version cannot be submitted."
    alone = f"Resolutions prepared by {approver}: too few people can give 1 other person."
    assert problem() == f"{cannot} Rule 1 cannot be satisfied for {alone}"
    factories.person("Kola Ade", Role.APPROVER)
    assert problem() == f"{cannot} The draft is the same as the rules in effect."
    named = group("Nothing was changed.", approver)
    rule = {"kinds": ["conversion"], "needed1": "2", "of1": f"group:{named.pk}"}
    as_administrator.post(f"{DRAFT}rules/new/", rule)
    missing = f"too few people can give 2 of {named.name}."
    assert problem() == f"{cannot} Rule 2 cannot be satisfied for Conversions: {missing}", "no name is cut"
    put_in_effect(levels((1, {})))
    outdated = "Another version took effect meanwhile. Prepare your version again from the new rules."
    assert problem() == f"{cannot} {outdated}"


def test_lists_are_made_of_the_register_and_of_typed_accounts(
    as_administrator: Client, preparer: User, approver: User
) -> None:
    put_in_effect(time_zone="Africa/Lagos")
    registered.agreed(registered.bank_account("5555555555", "KOLA EZE", alias="Rent"), preparer, approver)
    registered.suggested(preparer, "Old landlord", "7777777777")
    new = {"time_zone": "Africa/Lagos", "new_name": "Suppliers"}
    typed = "rent, bank:044:0123456789, user:Ada, 5555555555"
    assert as_administrator.post(LISTS, new | {"new_join": typed}).status_code == 302
    as_administrator.post(f"{DRAFT}rules/new/", {"on_list": "Suppliers", "needed1": "1"})
    shown = page(as_administrator, DRAFT)
    assert "All operations to the list “Suppliers” need 1 other person" in shown
    for recipient in ("Rent, account 5555555555 at bank 044", "account 0123456789 at bank 044", "user ada"):
        assert shown.count(recipient) == 1
    assert "Rent · KOLA EZE, Access Bank" in page(as_administrator, LISTS)
    kept = {"time_zone": "Africa/Lagos", "was0": "Suppliers"}
    for wrong, message in (
        ({"drop0": "on"}, "Rule 1 names this list."),
        ({"was0": "Others"}, "The lists were changed in another window."),
        ({"time_zone": "Mars"}, "Mars"),
        ({"join0": f"user:{'a' * 200}"}, "is not an approved recipient"),
        ({"join0": "bank:044:012345678"}, "“bank:044:012345678” is not an approved recipient"),
        ({"join0": "7777777777"}, "“7777777777” is not an approved recipient"),
        ({"new_name": "suppliers", "new_join": "Rent"}, "A list with this name already exists."),
        ({"new_name": "Own"}, "Enter at least one recipient."),
        ({"new_join": "Rent"}, "Enter the name of the list."),
    ):
        answer = as_administrator.post(LISTS, kept | wrong)
        assert (answer.status_code, message in text(answer)) == (422, True), message
    again = as_administrator.post(LISTS, kept | {"join0": "user:bola", "again": "1"})
    assert again.headers["Location"] == LISTS
    as_administrator.post(f"{DRAFT}rules/1/move/", {"to": "remove"})
    assert as_administrator.post(LISTS, kept | {"drop0": "on"}).status_code == 302
    assert "List Suppliers" not in page(as_administrator, DRAFT)


def test_a_name_of_two_recipients_says_nothing(
    as_administrator: Client, preparer: User, approver: User
) -> None:
    for number in ("1111111111", "5555555555"):
        registered.agreed(registered.bank_account(number, "KOLA EZE"), preparer, approver)
    typed = {"time_zone": "UTC", "new_name": "Suppliers", "new_join": "Kola Eze"}
    answer = as_administrator.post(LISTS, typed)
    assert (answer.status_code, "matches more than one recipient" in text(answer)) == (422, True)


def test_the_first_draft_is_in_the_time_zone_of_who_edits_it(
    as_administrator: Client, administrator: User
) -> None:
    User.objects.filter(pk=administrator.pk).update(time_zone="Europe/Berlin")
    assert '<option value="Europe/Berlin" selected>' in as_administrator.get(LISTS).content.decode()
    put_in_effect({"when": {"kinds": ["transfer"]}, "refuse": "No transfers"}, time_zone="Asia/Tokyo")
    assert '<option value="Asia/Tokyo" selected>' in as_administrator.get(LISTS).content.decode()


def test_the_zone_of_the_first_version_is_explained_and_is_no_change(
    as_administrator: Client, administrator: User, other_administrator: User
) -> None:
    assert other_administrator
    User.objects.filter(pk=administrator.pk).update(time_zone="Europe/Berlin")
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["transfer"], "refuse": "No transfers"})
    explained = "use the time zone Europe/Berlin. The time zone of your account is preselected"
    for url in (DRAFT, REVIEW):
        shown = page(as_administrator, url)
        assert explained in shown, url
        assert "Time zone for hours" not in shown, url
    for _ in range(4):
        as_administrator.post(f"{DRAFT}rules/1/move/", {"to": "remove"})
    operation = proposed_in_forms(as_administrator)
    assert "another time zone" not in operation.sentence
    assert "Time zone for hours Europe/Berlin" in page(as_administrator, operation.get_absolute_url())


def test_the_review_says_of_which_group_nobody_can_approve_yet(
    as_administrator: Client, approver: User, second_approver: User
) -> None:
    new = factories.person("Not Ready", Role.APPROVER)
    AuthenticatorDevice.objects.filter(user=new).delete()
    board, treasury = group("Board", new), group("Treasury", approver)
    of = {"kinds": ["transfer"], "needed1": "1"}
    for found in (board, treasury):
        as_administrator.post(f"{DRAFT}rules/new/", of | {"of1": f"group:{found.pk}"})
    shown = page(as_administrator, REVIEW)
    assert "Nobody in Board has finished the set-up yet." in shown
    assert "Nobody in Treasury" not in shown


REQUIREMENTS = f"{DRAFT}recipients/"


def test_requirements_for_recipients_are_proposed_in_a_form_and_seen_by_who_approves(
    as_administrator: Client, other_administrator: User, preparer: User
) -> None:
    put_in_effect(recipients={"approved_only": ["transfer"], "cooling": {"hours": 24}})
    typed = {
        "approved_only": ["withdrawal", "transfer"],
        "hours": "12",
        "ceiling_NGN": "50,000",
        "extra_approval": "on",
    }
    assert as_administrator.post(REQUIREMENTS, typed).status_code == 302
    as_administrator.post(LISTS, {"time_zone": "UTC"})  # leaves the requirements as they are
    shown = page(as_administrator, DRAFT)
    assert "No rule differs." in shown
    texts = (
        "Withdrawals and Transfers can be made to approved recipients only.",
        "A recipient that is new or changed can be paid after 12 hours. Before that, up to NGN 50,000.00 in total "
        "can be paid. With one more approval it can be paid at once.",
    )
    before = "A recipient that is new or changed can be paid after 24 hours."
    for text_ in (*texts, before):
        assert text_ in shown
    operation = proposed_in_forms(as_administrator)
    assert operation.sentence.endswith("changed requirements for recipients")
    other = factories.sign_in(Client(), other_administrator)
    facts = f"Cooling-off period for recipients {texts[1]} Cooling-off period for recipients, before {before}"
    assert facts in page(other, operation.get_absolute_url())
    compared = page(other, f"{SETTINGS}proposals/{operation.pk}/")
    assert f"{before} {texts[1]} Changed" in compared
    factories.approve(operation, other_administrator)
    shown = page(other, SETTINGS)
    for text_ in texts:
        assert text_ in shown
    assert "The settings of this installation" not in shown
    with pytest.raises(RecipientNotApprovedError):
        factories.prepared(preparer)
    assert f"{texts[0]} Changed" in page(other, f"{SETTINGS}versions/2/")


def test_the_form_has_what_the_draft_requires(as_administrator: Client) -> None:
    ceilings = [{"currency": "USDT", "amount": "10.5"}]
    put_in_effect(recipients={"approved_only": ["payment"], "cooling": {"hours": 5, "ceilings": ceilings}})
    form = as_administrator.get(REQUIREMENTS).context["form"]
    as_administrator.post(REQUIREMENTS, {name: value for name, value in form.initial.items() if value})
    assert "No rule differs." in page(as_administrator, DRAFT)
    assert not as_administrator.get(DRAFT).context["is_changed"]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"hours": "0"}, "Enter 1 or more"),
        ({"ceiling_NGN": "5"}, "Enter the hours, or clear the other cooling-off fields."),
        ({"extra_approval": "on"}, "Enter the hours, or clear the other cooling-off fields."),
        ({"hours": "24", "ceiling_NGN": "0"}, "greater than zero"),
        ({"hours": "24", "ceiling_NGN": "1.001"}, "decimal"),
        ({"hours": "24", "ceiling_NGN": "five"}, "Enter an amount"),
        ({"approved_only": ["conversion"]}, "“conversion” is not among them"),
    ],
)
def test_requirements_that_mean_nothing_are_refused(
    as_administrator: Client, typed: dict[str, Any], message: str
) -> None:
    answer = as_administrator.post(REQUIREMENTS, typed)
    assert answer.status_code == 422
    assert message in text(answer)


def test_the_pages_say_what_the_deployment_demands_beyond_the_version(
    as_administrator: Client, settings: Settings
) -> None:
    settings.ALLOW_LIST = frozenset({"wallet_transfer"})
    put_in_effect(recipients={"approved_only": ["transfer"]})
    demanded = "Crypto transfers can be made to approved recipients only."
    for url in (SETTINGS, DRAFT, REQUIREMENTS):
        shown = page(as_administrator, url)
        assert "The settings of this installation require this as well" in shown
        assert demanded in shown
    put_in_effect(recipients={"approved_only": ["transfer", "wallet_transfer"]})
    assert "The settings of this installation" not in page(as_administrator, SETTINGS)


def test_a_typed_operation_to_a_recipient_that_is_not_approved_would_be_refused(
    as_administrator: Client, preparer: User
) -> None:
    put_in_effect(recipients={"approved_only": ["transfer"]})
    values = f"{SETTINGS}try/?kind=transfer&preparer={preparer.pk}&recipient=user:ada"
    only_approved = "Payments of this kind can be made to approved recipients only, whatever the rules."
    assert f"Refused {only_approved}" in page(as_administrator, values)
    assert only_approved not in page(as_administrator, f"{values}&recipient_is=saved")


def test_a_typed_operation_shows_the_rule_and_why_none_before_it(
    as_administrator: Client, preparer: User
) -> None:
    put_in_effect(
        {"when": {"kinds": ["transfer"]}, "refuse": "No transfers"},
        {"when": {"currencies": NGN, "amount": {"above": 100}}, "levels": [{"needed": 2}]},
    )
    values = f"kind=withdrawal&currency=ngn&amount=150&preparer={preparer.pk}"
    shown = page(as_administrator, f"{SETTINGS}try/?{values}")
    assert "Needs 2 other people" in shown
    assert "Rule 2 applies: All operations above NGN 100.00 need 2 other people." in shown
    assert "Transfers are refused: “No transfers”: different kind" in shown
    assert "Refused" in page(as_administrator, f"{SETTINGS}try/?kind=transfer&preparer={preparer.pk}")


def test_a_batch_to_try_is_decided_as_its_rows_are(as_administrator: Client, preparer: User) -> None:
    withdrawals = {"kinds": ["withdrawal"], "currencies": NGN, "amount": {"above": 100}}
    put_in_effect(
        {"when": withdrawals, "levels": [{"needed": 2}]}, recipients={"approved_only": ["transfer"]}
    )
    shown = page(
        as_administrator, f"{SETTINGS}try/?kind=batch&currency=NGN&amount=150&preparer={preparer.pk}"
    )
    assert "Withdrawals as rows: Needs 2 other people Rule 1 applies" in shown
    assert "Transfers as rows: Refused Payments of this kind" in shown
    assert "Crypto transfers as rows: Needs 1 other person Rule 2 applies" in shown


def test_a_typed_amount_needs_its_currency(as_administrator: Client, preparer: User) -> None:
    """Otherwise every rule for a currency seems not to fit, and too few approvals are shown."""
    values = f"kind=withdrawal&amount=150&preparer={preparer.pk}"
    shown = as_administrator.get(f"{SETTINGS}try/?{values}")
    assert shown.status_code == 422
    assert shown.context["form"].errors == {"currency": ["Enter the currency of the amount."]}


# Review and submission


def test_the_review_shows_both_versions_the_replay_and_asks_for_the_reason(
    as_administrator: Client, other_administrator: User, preparer: User
) -> None:
    put_in_effect({"when": {"kinds": ["transfer"]}, "refuse": "No transfers"})
    factories.prepared(preparer)
    as_administrator.post(f"{DRAFT}rules/1/", {"kinds": ["withdrawal"], "refuse": "No withdrawals"})
    shown = page(as_administrator, REVIEW)
    assert (
        "Transfers are refused: “No transfers” 1. Withdrawals are refused: “No withdrawals” Changed" in shown
    )
    assert "Refused 1 More approvals 0 Fewer or different approvals 0 Unchanged 0" in shown
    refused = submit(as_administrator, reason=" ")
    assert (refused.status_code, "Enter the reason for this change." in text(refused)) == (422, True)
    operation = proposed_in_forms(as_administrator)
    other = factories.sign_in(Client(), other_administrator)
    assert f"Reason {REASON}" in page(other, operation.get_absolute_url())
    assert f"Reason {REASON}" in page(other, f"{SETTINGS}proposals/{operation.pk}/")
    assert "No rule differs." in page(as_administrator, DRAFT)
    again = as_administrator.post(f"{DRAFT}propose/", {"submission": str(operation.pk), "reason": REASON})
    assert again.headers["Location"] == operation.get_absolute_url()


def test_what_changed_after_the_review_is_reviewed_again(as_administrator: Client) -> None:
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["transfer"], "refuse": "No", "recipient": "new"})
    reviewed = as_administrator.get(REVIEW).context["reviewed"]
    as_administrator.post(f"{DRAFT}rules/1/", {"kinds": ["transfer"], "refuse": "No"})
    answer = submit(as_administrator, reviewed=reviewed, confirmed="on")
    assert (answer.status_code, Operation.objects.exists()) == (422, False)
    assert "the details changed after your review" in text(answer)


def test_a_draft_that_changes_nothing_is_not_submitted(as_administrator: Client) -> None:
    put_in_effect({"when": {"kinds": ["transfer"], "recipient": "new"}, "refuse": "No transfers"})
    answer = submit(as_administrator)
    assert (answer.status_code, Operation.objects.exists()) == (422, False)
    assert "The draft is the same as the rules in effect." in text(answer)


@pytest.mark.parametrize(
    ("rule", "warning"),
    [
        ({"refuse": "Closed"}, "This version refuses all payments."),
        (
            {"kinds": ["withdrawal", "transfer"], "refuse": "Closed"},
            "This version refuses all operations of these kinds: Withdrawals, Transfers.",
        ),
    ],
)
def test_refusing_payments_without_exception_is_confirmed_by_both_people(
    as_administrator: Client, other_administrator: User, rule: dict[str, Any], warning: str
) -> None:
    put_in_effect()
    as_administrator.post(f"{DRAFT}rules/new/", {**rule, "position": "1"})
    for url in (DRAFT, REVIEW):
        assert warning in page(as_administrator, url)
    answer = submit(as_administrator)
    assert (answer.status_code, Operation.objects.exists()) == (422, False)
    assert "Confirm this, or change the rules." in text(answer)
    submit(as_administrator, confirmed="on")
    operation = Operation.objects.get()
    assert warning in page(factories.sign_in(Client(), other_administrator), operation.get_absolute_url())
    with pytest.raises(AcknowledgementMissingError):
        approvals.approve_operation(
            operation.pk,
            actor=other_administrator,
            digest=operation.digest,
            second_factor_at=clock.now(),
            confirmation=approvals.ApproverConfirmation(),
        )
    factories.approve(operation, other_administrator)
    assert warning in page(as_administrator, SETTINGS)


def test_a_version_that_permits_some_payments_needs_no_confirmation(
    as_administrator: Client, approver: User, second_approver: User
) -> None:
    put_in_effect()
    as_administrator.post(f"{DRAFT}rules/new/", {"refuse": "Closed", "position": ""})
    as_administrator.post(f"{DRAFT}rules/new/", {"needed1": "1", "currencies": "NGN", "position": "1"})
    assert "This version refuses" not in page(as_administrator, REVIEW)
    submit(as_administrator)
    assert Operation.objects.get().status == Status.PENDING


def test_a_version_that_requires_less_is_announced_to_both_people(
    as_administrator: Client, other_administrator: User
) -> None:
    for name in ("Ife Obi", "Uche Ojo", "Ada Eze"):
        factories.person(name, Role.APPROVER)
    when = {"kinds": ["withdrawal"], "currencies": NGN, "amount": {"above": 10_000}}
    put_in_effect({"when": when, "levels": [{"needed": 2}]})
    warning = "This version requires less than the rules in effect:"
    assert warning not in page(as_administrator, DRAFT)
    typed = {"kinds": ["withdrawal"], "needed1": "1", "position": "1"}
    assert as_administrator.post(f"{DRAFT}rules/new/", typed).status_code == 302
    sentence = "Withdrawals above NGN 10,000.00: 1 other person under rule 1, currently 2 other people."
    for url in (DRAFT, REVIEW):
        assert f"{warning} {sentence}" in page(as_administrator, url), url
    operation = proposed_in_forms(as_administrator)
    other = factories.sign_in(Client(), other_administrator)
    for url in (f"{SETTINGS}proposals/{operation.pk}/", operation.get_absolute_url()):
        assert f"{warning} {sentence}" in page(other, url), url
    put_in_effect({"levels": [{"needed": 1}]})  # instead of the version that it replaces
    assert warning not in page(other, operation.get_absolute_url())
    assert f"{warning} {sentence}" in page(other, f"{SETTINGS}proposals/{operation.pk}/")


def test_the_replay_counts_approvals_of_others_as_the_announcement_does(
    as_administrator: Client, preparer: User, approver: User
) -> None:
    treasury = group("Treasury", approver, factories.person("Uche Ojo", Role.APPROVER))
    put_in_effect(levels((2, of_group(treasury))))
    factories.prepared(preparer)
    [found] = replay(document({"levels": [{"needed": 2}]}), clock.now()).operations
    assert (found.needed, found.would_need, found.change) == (2, 2, Change.FEWER)


def test_a_version_that_waits_is_named_on_the_policies_and_on_a_draft(
    as_administrator: Client, administrator: User, auditor: User
) -> None:
    first = proposed(administrator, {"levels": [{"needed": 1}]})
    for url in (SETTINGS, DRAFT, REVIEW):
        shown = page(as_administrator, url)
        assert f"A version is waiting for approval: {first.reference}" in shown, url
        assert ("Your draft does not include these changes." in shown) == (url != SETTINGS)
    proposed(administrator, {"when": {"kinds": ["transfer"]}, "levels": [{"needed": 1}]})
    shown = page(factories.sign_in(Client(), auditor), SETTINGS)
    assert "2 versions are waiting for approval:" in shown
    assert "Only the version that is approved first takes effect." in shown
    put_in_effect({"levels": [{"needed": 1}]})
    shown = page(as_administrator, DRAFT)
    assert shown.count("Cannot be approved: another version has taken effect since.") == 2
    assert "Only the version that is approved first takes effect." not in shown


# Replay


def test_the_replay_says_what_would_have_been_refused_needed_more_or_fewer(
    as_administrator: Client, preparer: User
) -> None:
    small, large = factories.prepared(preparer), factories.prepared(preparer, amount=Decimal(20_000_000))
    refused = factories.prepared(preparer, amount=Decimal(7))
    new = document(
        {"when": {"currencies": NGN, "amount": {"up_to": 10}}, "refuse": "Too small"},
        {"when": {"currencies": NGN, "amount": {"up_to": 1_000_000}}, "levels": [{"needed": 3}]},
    )
    found = {one.operation_id: one for one in replay(new, clock.now()).operations}
    assert {pk: (one.change, one.rule) for pk, one in found.items()} == {
        small.pk: (Change.MORE, 2),
        large.pk: (Change.FEWER, 3),
        refused.pk: (Change.REFUSED, 1),
    }
    as_administrator.post(f"{DRAFT}rules/1/", {"kinds": ["withdrawal"], "needed1": "2"})
    shown = page(as_administrator, f"{DRAFT}replay/")
    assert "Refused 0 More approvals 2 Fewer or different approvals 0 Unchanged 1" in shown
    assert f"{small.reference} Withdrawals NGN 250,000.00 1 → 2 1. Withdrawals need 2 other people" in shown
    rows = list(
        csv.DictReader(io.StringIO(as_administrator.get(f"{DRAFT}replay/?format=csv").content.decode()))
    )
    assert {row["reference"]: row["change"] for row in rows}[small.reference] == "more"
    sentences = {row["reference"]: row["sentence"] for row in rows}
    assert sentences[small.reference] == "Withdrawals need 2 other people"
    assert len(rows) == 3


def test_the_replay_says_which_recipients_would_have_been_refused(
    as_administrator: Client, preparer: User, approver: User
) -> None:
    early = factories.prepared(preparer)
    registered.agreed(registered.bank_account(), preparer, approver)
    later = factories.prepared(preparer, amount=Decimal(7))
    elsewhere = factories.prepared_of_kind("wallet_transfer", SAMPLES["wallet_transfer"], preparer)
    new = document(recipients={"approved_only": ["withdrawal"], "cooling": {"hours": 24}})
    found = {one.operation_id: one for one in replay(new, clock.now()).operations}
    assert (found[early.pk].change, found[early.pk].rule) == (Change.REFUSED, 0)
    assert Change.REFUSED not in {found[later.pk].change, found[elsewhere.pk].change}
    as_administrator.post(REQUIREMENTS, {"approved_only": ["withdrawal"], "hours": "24"})
    shown = page(as_administrator, f"{DRAFT}replay/")
    assert "1 → Refused Withdrawals can be made to approved recipients only." in shown
    assert "The cooling-off period for recipients is not replayed." in shown


def test_the_replay_of_a_batch_says_which_recipients_would_have_been_refused(
    preparer: User, approver: User
) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(2))
    found = replay(document(recipients={"approved_only": ["transfer"]}), clock.now()).operations
    assert {one.operation_id: one.change for one in found} == {batch.pk: Change.REFUSED}


def test_the_replay_decides_as_the_preparation_did(preparer: User, approver: User) -> None:
    """New recipients, totals and what ended unsent meanwhile included: the same version changes nothing."""
    total = {"window": "day", "of": "recipient", "above": 600_000}
    rules: list[dict[str, Any]] = [
        {"when": {"recipient": "paid_before"}, "levels": [{"needed": 3}]},
        {"when": {"currencies": NGN, "total": total}, "levels": [{"needed": 2}]},
    ]
    put_in_effect(*rules)
    for _ in range(4):
        factories.prepared(preparer)
    done = Operation.objects.order_by("prepared_at").first()
    assert done is not None
    Operation.objects.filter(pk=done.pk).update(status=Status.CANCELLED, closed_at=clock.now())
    factories.prepared_to_another_account(preparer)
    for _ in range(3):
        factories.prepared(preparer)
    found = replay(document(*rules), clock.now())
    assert [one.change for one in found.operations] == [Change.SAME] * 8
    assert {one.needed for one in found.operations} == {1, 2}


@pytest.mark.parametrize("levels", [[], [{"needed": "two"}], {"needed": 1}])
def test_the_replay_leaves_out_what_was_altered_so_that_it_cannot_be_read(
    preparer: User, levels: object
) -> None:
    altered, other = factories.prepared(preparer), factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=altered.pk).update(levels=levels)
    assert [one.reference for one in replay(document(), clock.now()).operations] == [other.reference]


def test_a_replay_that_leaves_out_operations_says_so(
    as_administrator: Client, preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.prepared(preparer)
    assert "Only the newest" not in page(as_administrator, f"{DRAFT}replay/")
    factories.prepared_to_another_account(preparer)
    for module in ("pages.policies", "policy_replay"):
        monkeypatch.setattr(f"backoffice.governance.{module}.MOST_OPERATIONS", 1)
    assert "Only the newest 1 operations of this period" in page(as_administrator, f"{DRAFT}replay/")


def many_operations(preparer: User, count: int) -> None:
    first = factories.prepared(preparer)
    members = {field.attname: getattr(first, field.attname) for field in Operation._meta.concrete_fields}
    rows = [
        Operation(
            **members
            | {
                "id": uuid.uuid4(),
                "reference": f"X-{number:06}",
                "content_key": uuid.uuid4().hex,
                "recipient_key": f"bank:044:{number % 997:010}",
            }
        )
        for number in range(count - 1)
    ]
    Operation.objects.bulk_create(rows, batch_size=200)


def test_ten_thousand_operations_are_replayed_quickly(preparer: User, record_property: Any) -> None:
    """The time is noted, not checked: nothing in the tests fails on time."""
    many_operations(preparer, 10_000)
    total = {"window": "week", "of": "recipient", "above": 10**9}
    rules = [
        {"when": {"currencies": NGN, "total": total}, "levels": [{"needed": 2}]},
        *(
            {
                "when": {"currencies": NGN, "amount": {"above": 10**9 + n}, "recipient": "new"},
                "levels": [{"needed": 2}],
            }
            for n in range(20)
        ),
    ]
    began = time.perf_counter()
    found = replay(document(*rules), clock.now())
    seconds = time.perf_counter() - began
    record_property("seconds", seconds)
    assert len(found.operations) == 10_000


# Budgets


def two_hundred_rules() -> list[dict[str, Any]]:
    return [
        {
            "when": {
                "kinds": ["withdrawal"],
                "currencies": NGN,
                "amount": {"above": 1_000_000 + n},
                "recipient": "new",
            },
            "levels": [{"needed": 1, "of": {"role": "Approver"}}, {"needed": 2}],
        }
        for n in range(200)
    ]


@pytest.mark.parametrize(
    "url",
    [
        SETTINGS,
        DRAFT,
        f"{DRAFT}rules/1/",
        f"{DRAFT}lists/",
        f"{SETTINGS}versions/1/",
        f"{SETTINGS}try/?kind=transfer",
    ],
)
def test_pages_keep_their_budgets_with_two_hundred_rules(
    as_administrator: Client,
    preparer: User,
    url: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    put_in_effect(*two_hundred_rules())
    if "try" in url:
        url += f"&preparer={preparer.pk}"
    as_administrator.get(url)
    with django_assert_max_num_queries(6):
        response = as_administrator.get(url)
    assert len(gzip.compress(response.content)) <= 14_000, len(gzip.compress(response.content))


def test_a_new_rule_comes_where_it_was_put(as_administrator: Client) -> None:
    form = as_administrator.get(f"{DRAFT}rules/new/").content.decode()
    assert re.search(r'<input type="number" name="position" (?!value)', form)
    assert "even where they are stricter" in form
    for reason, position in (
        ("Behind the others", ""),
        ("In between", "2"),
        ("First of all", "1"),
        ("Last", "500"),
    ):
        refused = {"refuse": reason, "position": position}
        assert as_administrator.post(f"{DRAFT}rules/new/", refused).status_code == 302
    shown = page(as_administrator, DRAFT)
    in_order = sorted(["First of all", "In between", "Behind the others", "Last"], key=shown.index)
    assert in_order == ["First of all", "In between", "Behind the others", "Last"]
    wrong = as_administrator.post(f"{DRAFT}rules/new/", {"refuse": "Never", "position": "0"})
    assert (wrong.status_code, "Never" in page(as_administrator, DRAFT)) == (422, False)


def test_an_account_added_to_a_list_is_shown_and_counted_wherever_it_is_judged(
    as_administrator: Client,
    other_administrator: User,
    preparer: User,
    approver: User,
    second_approver: User,
) -> None:
    registered.agreed(registered.bank_account("5555555555", "MALLORY"), preparer, approver)
    rule = {"when": {"on_list": "Suppliers"}, "levels": [{"needed": 1}]}
    put_in_effect(rule, lists=[{"name": "Suppliers", "keys": ["bank:044:0123456789", "user:ada"]}])
    changed = {"was0": "Suppliers", "leave0": ["user:ada"], "join0": "Mallory"}
    as_administrator.post(LISTS, {"time_zone": "UTC", **changed})
    added, removed = "MALLORY, account 5555555555 at bank 044", "user ada"
    shown = page(as_administrator, DRAFT)
    assert (added in shown, removed in shown, "0123456789" in shown) == (True, True, False)
    operation = proposed_in_forms(as_administrator)
    as_other = factories.sign_in(Client(), other_administrator)
    assert "into effect: 1 rule, 2 changes to recipient lists" in page(as_other, operation.get_absolute_url())
    shown = page(as_other, operation.get_absolute_url())
    assert "Recipients on lists 1 added, 1 removed" in shown
    assert "account 5555555555 at bank 044" in shown
    shown = page(as_other, f"{SETTINGS}proposals/{operation.pk}/")
    assert (added in shown, removed in shown) == (True, True)
    factories.approve(operation, other_administrator)
    assert added in page(as_other, f"{SETTINGS}versions/2/")
    assert "List Suppliers: 2 recipients account 0123456789 at bank 044" in page(as_other, SETTINGS)


def test_another_time_zone_is_shown_and_counted_wherever_it_is_judged(
    as_administrator: Client, other_administrator: User
) -> None:
    put_in_effect({"when": {"kinds": ["transfer"]}, "refuse": "No transfers"})
    as_administrator.post(LISTS, {"time_zone": "Africa/Lagos"})
    zones = "Time zone for hours: UTC Time zone for hours: Africa/Lagos Changed"
    assert zones in page(as_administrator, DRAFT)
    operation = proposed_in_forms(as_administrator)
    as_other = factories.sign_in(Client(), other_administrator)
    assert "another time zone for hours" in page(as_other, operation.get_absolute_url())
    assert "Time zone for hours Africa/Lagos (before: UTC)" in page(as_other, operation.get_absolute_url())
    assert zones in page(as_other, f"{SETTINGS}proposals/{operation.pk}/")
    factories.approve(operation, other_administrator)
    assert zones in page(as_other, f"{SETTINGS}versions/2/")


def test_hours_name_the_zone_of_the_document(as_administrator: Client, preparer: User) -> None:
    hours = {"when": {"hours": {"weekdays": [0, 1, 2, 3, 4, 5, 6]}}, "levels": [{"needed": 1}]}
    put_in_effect(hours, time_zone="Africa/Lagos")
    assert "in the time zone Africa/Lagos" in page(as_administrator, f"{DRAFT}rules/new/")
    assert "00:00 to 24:00 (Africa/Lagos) need 1 other person" in page(as_administrator, SETTINGS)
    assert "00:00 to 24:00 (Africa/Lagos) need 1 other person" in factories.prepared(preparer).rule_sentence


def test_a_rejected_version_is_prepared_again_from_its_rules(
    as_administrator: Client, other_administrator: User, approver: User
) -> None:
    put_in_effect({"when": {"kinds": ["withdrawal"]}, "levels": [{"needed": 1}]})
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["transfer"], "refuse": "No"})
    operation = proposed_in_forms(as_administrator)
    approvals.reject_operation(
        operation.pk,
        actor=other_administrator,
        digest=operation.digest,
        second_factor_at=clock.now(),
        reason="Say why",
    )
    put_in_effect({"when": {"kinds": ["withdrawal"]}, "levels": [{"needed": 2}]})
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["conversion"], "needed1": "2"})
    again = as_administrator.get(f"/operations/prepare/approval_policy/?copy={operation.pk}", follow=True)
    assert f"To prepare {operation.reference} again" in text(again)
    assert "What is in the draft now is replaced." in text(again)
    assert "Conversions need 2 other people" in page(as_administrator, DRAFT), "nothing is replaced yet"
    shown = text(as_administrator.post(f"{DRAFT}copy/{operation.pk}/", follow=True))
    assert "Transfers are refused: “No”" in shown
    assert "Conversions need" not in shown
    assert "Another version has taken effect" not in shown
    assert "1. Withdrawals need 2 other people" in shown, "compared with the rules in effect now"
    assert "To prepare" not in page(as_administrator, f"{DRAFT}?copy=nonsense")


def test_a_renamed_group_has_its_new_name_everywhere_and_stops_no_draft(
    as_administrator: Client,
    other_administrator: User,
    preparer: User,
    approver: User,
    second_approver: User,
) -> None:
    directors = group("Directors", approver, second_approver)
    put_in_effect({"when": {"kinds": ["withdrawal"]}, **levels((1, of_group(directors)), (1, {}))})
    waiting = factories.prepared(preparer)
    rename_group(directors.pk, name="Board")
    for url in (SETTINGS, DRAFT, f"{SETTINGS}versions/1/", waiting.get_absolute_url()):
        shown = page(as_administrator, url)
        assert ("1 of Board" in shown, "Directors" in shown) == (True, False), url
    as_administrator.post(f"{DRAFT}rules/new/", {"kinds": ["transfer"], "refuse": "No"})
    operation = proposed_in_forms(as_administrator)
    assert "1 added, 0 changed, 0 removed" in page(as_administrator, operation.get_absolute_url())
    factories.approve(operation, other_administrator)
    assert PolicyVersion.objects.count() == 2
