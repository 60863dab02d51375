"""The form that invites several people: each becomes an operation of its own, all of them or none."""

import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts import groups
from backoffice.accounts.models import SetupLink, StaffGroup, StaffSession, User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.governance.pages.invitations import MAX_PEOPLE
from backoffice.operations.errors import NotPreparedTogetherError
from backoffice.operations.kinds.staff_change import StaffChange
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.operations.workflow.prepare import prepare_together
from tests import factories
from tests.operations.kinds.staff import changes

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
PAGE, LIVE = reverse("governance:invite"), reverse("governance:invited_live")
SUBMISSION = "6a1d3b52-4c1e-4f0b-9a53-7d0f8c2e9b11"


def person(number: int, name: str = "", email: str = "", *ticked: str) -> dict[str, str]:
    """What a browser submits of one person."""
    fields = {"full_name": name, "email": email} | dict.fromkeys(ticked, "on")
    return {f"p{number}-{field}": text for field, text in fields.items()}


ADA = person(1, "Ada Obi", "Ada@countersign.example", "role_approver")
BO = person(2, "Bo Li", "bo@countersign.example", "role_preparer")
TEAM = {**ADA, **BO, "reason": "The team of the first payment", "submission": SUBMISSION}


@pytest.fixture
def as_administrator(administrator: User, sign_in: SignIn) -> Client:
    return sign_in(Client(), administrator)


@pytest.fixture
def treasury() -> StaffGroup:
    return groups.create_group("Treasury")


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def typed_into(page: Any) -> dict[str, str]:
    """The text fields of the people in the form, and which of their boxes are ticked."""
    html = page.content.decode()
    texts = re.findall(r'name="(p\d+-(?:full_name|email))"(?: value="([^"]*)")?', html)
    ticked = re.findall(r'name="(p\d+-(?:role|in_group)_\w+)"[^>]* checked', html)
    return dict(texts) | dict.fromkeys(ticked, "on")


def errors_in(page: Any) -> list[str]:
    """The fields that are marked as wrong."""
    return re.findall(r'id="id_([\w-]+)_error"', page.content.decode())


def prepared() -> list[str]:
    return list(Operation.objects.order_by("recipient").values_list("recipient", flat=True))


def test_each_person_becomes_an_operation_of_its_own(
    as_administrator: Client, administrator: User, treasury: StaffGroup
) -> None:
    values = TEAM | {f"p1-in_group_{treasury.pk}": "on"}
    landed = as_administrator.post(PAGE, values, follow=True)
    ada, bo = Operation.objects.order_by("recipient")
    expected = changes.invitation(Role.APPROVER, name="Ada Obi", groups=(treasury,))
    assert ada.payload == expected.model_copy(update={"reason": TEAM["reason"]}).stored()
    assert (bo.payload["roles"], bo.payload["groups"]) == ([Role.PREPARER], [])
    assert {one.status for one in (ada, bo)} == {Status.PENDING}
    assert {one.preparer for one in (ada, bo)} == {administrator}
    assert Entry.objects.filter(action=Action.OPERATION_PREPARED).count() == 2
    assert not SetupLink.objects.exists()
    shown = text_of(landed)
    assert "2 invitations prepared" in shown
    assert "2 invitations wait for another administrator. That person selects them" in shown
    assert all(text in shown for text in ("Ada Obi", "Treasury", "Preparer", ada.verification_code))


def test_without_any_group_the_form_leads_to_the_first_one(as_administrator: Client) -> None:
    form = as_administrator.get(PAGE)
    assert "No groups yet. Create group" in text_of(form)
    assert (
        f"{reverse('operations:prepare', args=['staff_change'])}?change=create_group" in form.content.decode()
    )
    groups.create_group("Treasury")
    assert "No groups yet." not in text_of(as_administrator.get(PAGE))


def test_one_person_leads_to_the_page_of_the_operation(as_administrator: Client) -> None:
    page = as_administrator.get(PAGE)
    assert list(typed_into(page)) == ["p1-full_name", "p1-email"]
    answer = as_administrator.post(PAGE, {**ADA, "reason": "Joins", "submission": SUBMISSION})
    assert answer.headers["Location"] == Operation.objects.get().get_absolute_url()


def test_a_person_left_blank_is_not_invited(as_administrator: Client) -> None:
    as_administrator.post(PAGE, {**ADA, **person(2), **person(3, " "), "reason": "Joins"})
    assert prepared() == ["Ada Obi"]


def test_nobody_is_invited_without_a_name_an_address_and_a_reason(as_administrator: Client) -> None:
    answer = as_administrator.post(PAGE, {**person(1), "submission": SUBMISSION})
    assert answer.status_code == 422
    assert errors_in(answer) == ["p1-full_name", "p1-email", "reason"]


def test_an_error_is_beside_the_field_and_nothing_is_lost_or_prepared(
    as_administrator: Client, approver: User, treasury: StaffGroup
) -> None:
    third = person(3, "Kemi Eze", approver.email.upper(), "role_auditor", f"in_group_{treasury.pk}")
    answer = as_administrator.post(PAGE, TEAM | {"p2-email": "bo at example"} | third)
    assert (answer.status_code, prepared()) == (422, [])
    assert errors_in(answer) == ["p2-email", "p3-email"]
    assert "An account with this email address already exists." in text_of(answer)
    assert "Nothing was prepared. Correct the errors below." in text_of(answer)
    assert typed_into(answer) == {**ADA, **BO, "p2-email": "bo at example", **third}
    assert TEAM["reason"] in text_of(answer)
    assert f'value="{SUBMISSION}"' in answer.content.decode()
    assert re.findall(r'name="([^"]+)"[^>]* autofocus', answer.content.decode()) == ["p2-email"]


def test_an_address_is_entered_once_in_a_form(as_administrator: Client) -> None:
    answer = as_administrator.post(PAGE, TEAM | {"p2-email": "ADA@countersign.example "})
    assert (answer.status_code, prepared(), errors_in(answer)) == (422, [], ["p2-email"])
    assert "Another person in this form has this email address." in text_of(answer)


def test_all_are_prepared_or_none(as_administrator: Client, administrator: User) -> None:
    """An invitation of the second person is already waiting, which is found while they are prepared."""
    waiting = changes.proposed(changes.invitation(Role.PREPARER, name="Bo Li"), administrator)
    answer = as_administrator.post(PAGE, TEAM)
    assert (answer.status_code, prepared(), errors_in(answer)) == (422, ["Bo Li"], ["p2-email"])
    assert f"{waiting.reference} is about the same and already waiting" in text_of(answer)
    refusal = Entry.objects.get(action=Action.OPERATION_ACTION_REFUSED)
    assert (refusal.actor, refusal.detail["refusal"]["code"]) == (administrator, "change_pending")


def test_the_service_prepares_all_or_none(administrator: User, approver: User) -> None:
    good = changes.invitation(Role.APPROVER, name="Ada Obi")
    taken = good.model_copy(update={"full_name": "Bo Li", "email": approver.email})
    ids = [uuid.uuid4() for _ in range(2)]
    with pytest.raises(NotPreparedTogetherError) as caught:
        prepare_together(dict(zip(ids, (good, taken), strict=True)), actor=administrator, kind="staff_change")
    assert caught.value.operation_id == ids[1]
    assert prepared() == []


def test_a_form_submitted_twice_prepares_each_person_once(as_administrator: Client) -> None:
    first, second = as_administrator.post(PAGE, TEAM), as_administrator.post(PAGE, TEAM)
    assert first.headers["Location"] == second.headers["Location"]
    assert prepared() == ["Ada Obi", "Bo Li"]


def test_a_second_submission_says_that_it_is_one(as_administrator: Client) -> None:
    first = as_administrator.post(PAGE, TEAM)
    second = as_administrator.post(PAGE, TEAM, follow=True)
    assert second.redirect_chain == [(first.headers["Location"], 302)]
    assert "This form was already submitted. Each person was invited once." in text_of(second)


def test_a_submission_after_the_approval_leads_to_the_operation(
    as_administrator: Client, second_administrator: User
) -> None:
    values = {**ADA, "reason": "Joins", "submission": SUBMISSION}
    as_administrator.post(PAGE, values)
    operation = Operation.objects.get()
    factories.approve(operation, second_administrator)
    answer = as_administrator.post(PAGE, values)
    assert answer.headers["Location"] == operation.get_absolute_url()


def test_an_address_corrected_after_the_submission_is_refused(as_administrator: Client) -> None:
    """Otherwise the invitation to the wrong address would wait unnoticed beside the other one."""
    as_administrator.post(PAGE, TEAM)
    answer = as_administrator.post(PAGE, TEAM | {"p2-email": "bo.li@countersign.example"})
    assert answer.status_code == 422
    assert "already submitted with other content" in text_of(answer)
    assert Operation.objects.count() == 2


def test_the_submission_of_somebody_else_is_not_shown(
    as_administrator: Client, second_administrator: User, sign_in: SignIn
) -> None:
    as_administrator.post(PAGE, TEAM)
    answer = sign_in(Client(), second_administrator).post(PAGE, TEAM)
    assert (answer.status_code, Operation.objects.count()) == (422, 2)


def test_the_audit_log_is_locked_after_everybody_is_stored(as_administrator: Client) -> None:
    """Nobody else can write to it from then on, and whoever waits for it may have what is stored next."""
    with CaptureQueriesContext(connection) as queries:
        as_administrator.post(PAGE, TEAM)
    statements = [one["sql"] for one in queries]
    stored = [
        number
        for number, sql in enumerate(statements)
        if sql.startswith('INSERT INTO "operations_operation"')
    ]
    recorded = [
        number for number, sql in enumerate(statements) if sql.startswith('INSERT INTO "audit_entry"')
    ]
    assert len(stored) == 2
    assert [number for number in recorded if number > stored[0]] == [
        number for number in recorded if number > stored[1]
    ]


def test_an_address_that_no_database_can_store_names_nothing(as_administrator: Client) -> None:
    answer = as_administrator.get(reverse("governance:invited"), {"operation": "a\0b"})
    assert (answer.status_code, answer.headers["Location"]) == (302, reverse("governance:team"))


def test_a_form_submitted_again_with_one_person_more_prepares_only_that_one(
    as_administrator: Client,
) -> None:
    as_administrator.post(PAGE, TEAM)
    as_administrator.post(PAGE, TEAM | person(3, "Kemi Eze", "kemi@countersign.example", "role_auditor"))
    assert prepared() == ["Ada Obi", "Bo Li", "Kemi Eze"]


def test_a_form_submitted_again_with_other_rights_is_refused(as_administrator: Client) -> None:
    as_administrator.post(PAGE, TEAM)
    answer = as_administrator.post(PAGE, TEAM | {"p2-role_administrator": "on"})
    assert answer.status_code == 422
    assert "already submitted with other content" in text_of(answer)
    assert [one.payload["roles"] for one in Operation.objects.order_by("recipient")] == [
        [Role.APPROVER],
        [Role.PREPARER],
    ]


@pytest.mark.parametrize("by_script", [False, True])
def test_another_person_is_added_and_removed_with_and_without_a_script(
    as_administrator: Client, *, by_script: bool
) -> None:
    headers = {"HX-Request": "true"} if by_script else {}
    added = as_administrator.post(PAGE, TEAM | {"add": "1"}, headers=headers)
    assert added.status_code == 200
    blank = {"p3-full_name": "", "p3-email": ""}
    assert typed_into(added) == (blank if by_script else {**ADA, **BO, **blank})
    assert "Person 3" in text_of(added)
    assert re.findall(r'name="([^"]+)"[^>]* autofocus', added.content.decode()) == ["p3-full_name"]
    assert ("<h1>" in added.content.decode()) is not by_script
    assert errors_in(added) == []
    removed = as_administrator.post(PAGE, TEAM | {"remove": "1"}, headers=headers)
    assert typed_into(removed) == BO
    assert prepared() == []


def test_one_form_is_for_twenty_people_at_most(as_administrator: Client) -> None:
    many = {"reason": "A large team", "submission": SUBMISSION}
    for number in range(1, MAX_PEOPLE + 1):
        many |= person(number, f"P{number} Obi", f"p{number}@countersign.example", "role_auditor")
    page = as_administrator.post(PAGE, many | {"add": "1"})
    assert len(typed_into(page)) == 3 * MAX_PEOPLE
    assert "This form takes at most 20 people." in text_of(page)
    assert "Add another person" not in text_of(page)
    by_script = as_administrator.post(PAGE, many | {"add": "1"}, headers={"HX-Request": "true"})
    assert typed_into(by_script) == {}
    one_more = person(21, "Q Obi", "q@countersign.example", "role_auditor")
    answer = as_administrator.post(PAGE, many | one_more)
    assert (answer.status_code, prepared()) == (422, [])
    assert "Invite at most 20 people at once." in text_of(answer)
    assert "20 invitations prepared" in text_of(as_administrator.post(PAGE, many, follow=True))
    assert Operation.objects.count() == 20


def test_an_invitation_of_an_administrator_is_not_approved_in_bulk(
    as_administrator: Client, second_administrator: User, sign_in: SignIn
) -> None:
    values = TEAM | {"p2-role_administrator": "on"}
    page = text_of(as_administrator.post(PAGE, values, follow=True))
    assert "1 invitation has to be approved on its own page." in page
    assert "Warning: An administrator can prepare and approve staff changes." in page
    ada, bo = Operation.objects.order_by("recipient")
    chosen = {"operation": [f"{one.reference}:{one.digest}" for one in (ada, bo)]}
    sign_in(Client(), second_administrator).post(reverse("operations:bulk_approve"), chosen)
    assert [Operation.objects.get(pk=one.pk).status for one in (ada, bo)] == [
        Status.SUCCEEDED,
        Status.PENDING,
    ]


def test_after_the_approval_the_page_leads_to_each_link(
    as_administrator: Client, second_administrator: User, sign_in: SignIn
) -> None:
    address = as_administrator.post(PAGE, TEAM).headers["Location"]
    ada, bo = Operation.objects.order_by("recipient")
    factories.approve(ada, second_administrator)
    page = as_administrator.get(address).content.decode()
    assert reverse("governance:handover", args=[ada.pk]) in page
    assert reverse("governance:handover", args=[bo.pk]) not in page
    as_administrator.post(reverse("governance:handover", args=[ada.pk]))
    assert reverse("governance:handover", args=[ada.pk]) not in as_administrator.get(address).content.decode()
    others = sign_in(Client(), second_administrator).get(address)
    assert (others.status_code, others.headers["Location"]) == (302, reverse("governance:team"))


def test_the_open_page_shows_the_approval_and_polls_until_all_are_decided(
    as_administrator: Client, second_administrator: User, sign_in: SignIn
) -> None:
    address = as_administrator.post(PAGE, TEAM).headers["Location"]
    ada, bo = Operation.objects.order_by("recipient")
    seen = ""
    for decided, asked in ((None, ada), (ada, bo), (bo, None)):
        if decided is not None:
            factories.approve(decided, second_administrator)
            answer = as_administrator.get(f"{LIVE}?{address.partition('?')[2]}&seen={seen}")
            assert answer.status_code == 200
            assert "This page was updated." in text_of(answer)
            assert reverse("governance:handover", args=[decided.pk]) in answer.content.decode()
            assert "<html" not in answer.content.decode()
        page = as_administrator.get(address)
        seen = page.context["seen"]
        html = page.content.decode()
        assert (f"{LIVE}?" in html, "data-poll" in html) == (asked is not None,) * 2
        answer = as_administrator.get(LIVE, {"operation": [ada.reference, bo.reference], "seen": seen})
        assert answer.status_code == 204
    others = sign_in(Client(), second_administrator)
    assert others.get(LIVE, {"operation": [ada.reference, bo.reference]}).status_code == 204


def test_polling_the_page_does_not_extend_the_session(as_administrator: Client) -> None:
    address = as_administrator.post(PAGE, TEAM).headers["Location"]
    long_ago = timezone.now() - timedelta(minutes=10)
    StaffSession.objects.update(last_seen_at=long_ago)
    assert as_administrator.get(f"{LIVE}?{address.partition('?')[2]}").status_code == 200
    assert StaffSession.objects.get().last_seen_at == long_ago
    as_administrator.get(address)
    assert StaffSession.objects.get().last_seen_at > long_ago


def test_the_page_lists_invitations_only(as_administrator: Client, administrator: User) -> None:
    group = changes.proposed(changes.of_group(StaffChange.CREATE_GROUP, "Treasury"), administrator)
    answer = as_administrator.get(reverse("governance:invited"), {"operation": group.reference})
    assert answer.status_code == 302


def test_the_fields_of_another_change_are_ignored(as_administrator: Client, preparer: User) -> None:
    """The people are invited whatever else is posted: nobody's rights are changed by this form."""
    others = {
        "change": "rights",
        "person": str(preparer.pk),
        "p1-change": "rights",
        "p1-person": str(preparer.pk),
    }
    as_administrator.post(PAGE, TEAM | others)
    assert {one.payload["change"] for one in Operation.objects.all()} == {StaffChange.INVITE}
    assert {one.payload["person"] for one in Operation.objects.all()} == {0}


def test_the_page_says_what_each_role_may_do_once(as_administrator: Client) -> None:
    page = as_administrator.post(PAGE, TEAM | {"add": "1"}).content.decode()
    for name in ("preparer", "approver", "auditor", "administrator"):
        assert page.count(f'aria-describedby="about_role_{name}"') == 3
        assert page.count(f'id="about_role_{name}"') == 1
    assert "Approves and sends payments that others prepared." in page


def test_the_form_of_all_kinds_leads_here_and_has_the_copy_of_one(
    as_administrator: Client, administrator: User
) -> None:
    form = reverse("operations:prepare", args=["staff_change"])
    for query in ({}, {"change": "invite"}):
        assert as_administrator.get(form, query).headers["Location"] == PAGE
    operation = changes.proposed(changes.invitation(Role.APPROVER), administrator)
    assert 'value="Ada Obi"' in as_administrator.get(form, {"copy": str(operation.pk)}).content.decode()
    assert as_administrator.get(form, {"change": "create_group"}).status_code == 200


def test_the_pages_read_the_database_a_few_times(
    as_administrator: Client, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    many = TEAM | person(3, "Kemi Eze", "kemi@countersign.example", "role_auditor")
    address = as_administrator.post(PAGE, many).headers["Location"]
    for page in (PAGE, address):
        as_administrator.get(page)
        with django_assert_max_num_queries(6 + 3):  # one for each invitation: who else has the name
            as_administrator.get(page)
