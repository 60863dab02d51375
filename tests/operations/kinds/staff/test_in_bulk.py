"""Several invitations in a row: prepared one after the other, and approved at once, each as an operation of its own."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import SetupLink, User
from backoffice.accounts.roles import Role
from backoffice.operations.kinds.staff_change import StaffChange
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.kinds.staff import changes

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
PAGE = reverse("operations:bulk_approve")


def choices(*operations: Operation) -> dict[str, list[str]]:
    return {"operation": [f"{one.reference}:{one.digest}" for one in operations]}


def statuses(*operations: Operation) -> list[str]:
    return [Operation.objects.get(pk=one.pk).status for one in operations]


@pytest.fixture
def invitations(administrator: User) -> list[Operation]:
    names = ("Ada Obi", "Bo Li")
    return [changes.proposed(changes.invitation(Role.APPROVER, name=name), administrator) for name in names]


def test_invitations_are_approved_together_and_each_has_a_link_of_its_own(
    second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client = sign_in(Client(), second_administrator)
    listed = client.get(reverse("operations:list"), {"tab": "waiting"}).content.decode()
    assert "Approve selected…" in listed
    review = client.get(PAGE, choices(*invitations)).content.decode()
    assert all(text in review for text in ("ada@countersign.example", "bo@countersign.example", "Approver"))
    result = client.post(PAGE, choices(*invitations)).content.decode()
    assert statuses(*invitations) == [Status.SUCCEEDED] * 2
    links = SetupLink.objects.filter(code_for=second_administrator)
    assert {link.operation for link in links} == {one.pk for one in invitations}
    assert all(reverse("governance:handover", args=[one.pk]) in result for one in invitations)


def test_the_rights_in_each_are_visible_however_many_are_selected(
    administrator: User, second_administrator: User, sign_in: SignIn
) -> None:
    many = [
        changes.proposed(changes.invitation(Role.AUDITOR, name=f"P{number} Obi"), administrator)
        for number in range(11)
    ]
    review = sign_in(Client(), second_administrator).get(PAGE, choices(*many)).content.decode()
    assert review.count("<details open>") == review.count("<dd>Auditor</dd>") == 11


def test_they_are_listed_in_the_order_in_which_they_were_prepared(
    second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    """As on the page of their preparer, whichever was selected first."""
    client, chosen = sign_in(Client(), second_administrator), choices(*invitations[::-1])
    review = client.get(PAGE, chosen)
    assert [row.operation for row in review.context["included"]] == invitations
    result = client.post(PAGE, chosen)
    assert [line.operation for line in result.context["lines"]] == invitations


def test_nothing_is_said_about_sending_where_nothing_is_sent(
    second_administrator: User, approver: User, preparer: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client, chosen = sign_in(Client(), second_administrator), choices(*invitations)
    assert "Approving does not send" not in client.get(PAGE, chosen).content.decode()
    assert "Nothing was sent" not in client.post(PAGE, chosen).content.decode()
    exchange = factories.prepared_of_kind("conversion", SAMPLES["conversion"], preparer)
    client, chosen = sign_in(Client(), approver), choices(exchange)
    assert "Approving does not send" in client.get(PAGE, chosen).content.decode()
    assert "Nothing was sent" in client.post(PAGE, chosen).content.decode()


def test_whoever_prepared_them_approves_none(
    administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    sign_in(Client(), administrator).post(PAGE, choices(*invitations))
    assert statuses(*invitations) == [Status.PENDING] * 2
    assert not SetupLink.objects.exists()


def test_an_approver_of_payments_approves_no_invitation(
    approver: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    client = sign_in(Client(), approver)
    assert client.get(PAGE, choices(*invitations)).context["included"] == []
    client.post(PAGE, choices(*invitations))
    assert statuses(*invitations) == [Status.PENDING] * 2


@pytest.mark.parametrize("decision", ["bulk_approve", "bulk_reject"])
def test_an_administrator_decides_no_payment_in_bulk(
    administrator: User, preparer: User, sign_in: SignIn, decision: str
) -> None:
    payment, page = factories.prepared(preparer), reverse(f"operations:{decision}")
    client = sign_in(Client(), administrator)
    assert client.get(page, choices(payment)).context["included"] == []
    client.post(page, {**choices(payment), "reason": "Not ours"})
    assert statuses(payment) == [Status.PENDING]


def test_what_gives_administration_or_changes_an_account_is_approved_alone(
    administrator: User, second_administrator: User, approver: User, preparer: User, sign_in: SignIn
) -> None:
    alone = [
        changes.proposed(changes.invitation(Role.ADMINISTRATOR), administrator),
        changes.proposed(changes.of_person(StaffChange.SECOND_FACTOR, approver), administrator),
        changes.proposed(changes.rights(preparer, Role.AUDITOR), administrator),
    ]
    client = sign_in(Client(), second_administrator)
    assert client.get(PAGE, choices(*alone)).context["included"] == []
    client.post(PAGE, choices(*alone))
    assert statuses(*alone) == [Status.PENDING] * 3


def test_after_an_invitation_or_a_group_the_next_one_is_offered(
    administrator: User, second_administrator: User, invitations: list[Operation], sign_in: SignIn
) -> None:
    group = changes.proposed(changes.of_group(StaffChange.CREATE_GROUP, "Treasury"), administrator)
    for operation, offered in ((invitations[0], "Invite more people"), (group, "Create another group")):
        page = operation.get_absolute_url()
        assert offered in sign_in(Client(), administrator).get(page).content.decode()
        assert offered not in sign_in(Client(), second_administrator).get(page).content.decode()
