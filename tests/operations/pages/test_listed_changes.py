"""Lists of operations: a change that moves no money has what it does as its title, a payment its kind."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.operations.models.operations import Operation
from backoffice.operations.templatetags.operations import listed_title
from tests import factories
from tests.operations.conftest import SignIn
from tests.operations.kinds.samples import SAMPLES
from tests.operations.kinds.staff import changes
from tests.operations.pages.page_text import LIST, page

pytestmark = pytest.mark.django_db


@pytest.fixture
def invitation(administrator: User, second_administrator: User) -> Operation:
    return changes.proposed(changes.invitation(Role.APPROVER), administrator)


@pytest.mark.parametrize("address", ["/", f"{LIST}?tab=waiting", f"{LIST}?tab=all"])
def test_a_list_says_what_a_staff_change_does(
    sign_in: SignIn, second_administrator: User, invitation: Operation, address: str
) -> None:
    shown = page(sign_in(Client(), second_administrator), address)
    link = f'<a class="row" href="{invitation.get_absolute_url()}">'
    assert f"{link}Invite Ada Obi, ada@countersign.example</a>" in shown


def test_the_search_says_so_too(sign_in: SignIn, second_administrator: User, invitation: Operation) -> None:
    found = sign_in(Client(), second_administrator).post("/search/", {"q": "Ada Obi"})
    assert "Invite Ada Obi, ada@countersign.example</a>" in found.content.decode()


def test_a_payment_is_listed_by_its_kind(as_approver: Client, operation: Operation) -> None:
    assert f'<a class="row" href="{operation.get_absolute_url()}">Withdrawal</a>' in page(as_approver, LIST)


@pytest.mark.usefixtures("warm_caches")
def test_more_changes_need_no_more_queries(
    sign_in: SignIn, administrator: User, second_administrator: User, invitation: Operation
) -> None:
    client = sign_in(Client(), second_administrator)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(client, f"{LIST}?tab=all")
        return len(captured)

    queries()
    of_one = queries()
    for name in ("Kofi Mensah", "Efe Igho", "Ngozi Eze"):
        changes.proposed(changes.invitation(Role.AUDITOR, name=name), administrator)
    assert queries() == of_one


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_kind_has_a_title_in_lists(name: str, preparer: User) -> None:
    stored = Operation(kind=name, payload={}, sentence="What it does")
    assert listed_title(stored)


def test_a_change_whose_content_cannot_be_read_keeps_its_stored_sentence(invitation: Operation) -> None:
    invitation.payload = {}
    with translation.override("fr"):
        assert listed_title(invitation) == invitation.sentence


def test_an_operation_of_an_unknown_kind_is_listed_by_its_name(preparer: User) -> None:
    stored = factories.prepared(preparer)
    stored.kind = "of_a_later_release"
    assert listed_title(stored) == "of_a_later_release"
