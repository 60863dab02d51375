"""Every address of the team against every role."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.governance import urls
from tests import factories
from tests.operations.kinds.staff import changes

pytestmark = pytest.mark.django_db
ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")

# What each role is answered with. Forms are posted empty: 422 means that the person may.
#                  method  preparer approver auditor administrator outsider
ANSWERS = {
    "team":          ("get",  403, 403, 403, 200, 403),
    "groups":        ("get",  403, 403, 403, 200, 403),
    "invite":        ("post", 403, 403, 403, 422, 403),
    "invited":       ("get",  403, 403, 403, 302, 403),
    "bootstrap":     ("get",  403, 403, 403, 302, 403),
    "renew_link":    ("post", 403, 403, 403, 302, 403),
    "invited_live":  ("get",  403, 403, 403, 204, 403),
    "links":         ("post", 403, 403, 403, 409, 403),
    "start_codes":   ("post", 403, 403, 403, 409, 403),
    "handover":      ("post", 403, 403, 403, 200, 403),
    "access_review": ("get",  403, 403, 403, 200, 403),
    "reviewed":      ("get",  403, 403, 403, 404, 403),
    "person":        ("get",  403, 403, 403, 200, 403),
    "deactivate":    ("post", 403, 403, 403, 422, 403),
    "end_sessions":  ("post", 403, 403, 403, 422, 403),
    "delegations":    ("get",  200, 200, 200, 200, 403),
    "end_delegation": ("post", 404, 404, 404, 404, 403),
}  # fmt: skip


def test_the_table_has_every_address() -> None:
    """Those of approval policies and recipients are in `test_policies` and `test_recipients`."""
    elsewhere = ("polic", "recipient")
    of_the_team = {
        pattern.name
        for pattern in urls.urlpatterns
        if not any(part in str(pattern.name) for part in elsewhere)
    }
    assert set(ANSWERS) == of_the_team


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", ANSWERS)
def test_every_role_gets_its_answer(
    client: Client,
    name: str,
    role: str,
    request: pytest.FixtureRequest,
    sign_in: Callable[[Client, User], Client],
    outsider: User,
) -> None:
    method, *answers = ANSWERS[name]
    administrator, second_administrator = (
        request.getfixturevalue(name) for name in ("administrator", "second_administrator")
    )
    operation = changes.agreed(changes.invitation("Auditor"), administrator, second_administrator)
    key = {"handover": operation.pk, "reviewed": operation.pk, "person": outsider.pk}.get(name, outsider.pk)
    without = {"team", "groups", "invite", "invited", "invited_live", "links", "start_codes"}
    without |= {"bootstrap", "access_review", "delegations"}
    address = reverse(f"governance:{name}", args=[] if name in without else [key])
    answer = getattr(sign_in(client, request.getfixturevalue(role)), method)(address)
    assert answer.status_code == answers[ROLES.index(role)]


def test_the_other_administrators_do_not_see_the_halves_of_a_link(
    client: Client,
    sign_in: Callable[[Client, User], Client],
    administrator: User,
    second_administrator: User,
) -> None:
    operation = changes.agreed(changes.invitation("Auditor"), administrator, second_administrator)
    third = factories.person("Third Person", Role.ADMINISTRATOR)
    address = reverse("governance:handover", args=[operation.pk])
    assert sign_in(client, third).post(address).status_code == 404
