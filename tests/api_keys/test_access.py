"""Every address about keys against every role."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.api_keys import urls
from backoffice.api_keys.models import Rotation
from backoffice.api_keys.rotation import start_rotation
from tests import factories
from tests.requirements import opened_by

pytestmark = pytest.mark.django_db(transaction=True)

ROLES = ("preparer", "approver", "auditor", "administrator", "outsider")
UNREACHABLE = "http://127.0.0.1:9/v4"

# What each role is answered with. There is no secret, so 410 means that the person may ask for one.
#              method  preparer approver auditor administrator outsider
ANSWERS = {
    "keys":     ("get",  200, 200, 200, 200, 403),
    "list":     ("get",  200, 200, 200, 200, 403),
    "secret":   ("post", 410, 410, 410, 410, 403),
    "rotation": ("get",  200, 200, 200, 200, 403),
    "start":    ("post", 403, 403, 403, 302, 403),
    "test":     ("post", 403, 403, 403, 302, 403),
    "monitor":    ("post", 403, 403, 403, 422, 403),
    "finish":   ("post", 403, 403, 403, 302, 403),
    "abandon":  ("post", 403, 403, 403, 302, 403),
}  # fmt: skip
OF_A_ROTATION = {"test", "monitor", "finish", "abandon"}


def address_of(name: str, administrator: User) -> str:
    if name == "secret":
        return reverse("api_keys:secret", args=[factories.prepared(another_preparer()).pk])
    if name in OF_A_ROTATION:
        rotation = Rotation.objects.first() or start_rotation(actor=administrator)
        return reverse(f"api_keys:{name}", args=[rotation.pk])
    return reverse(f"api_keys:{name}")


def another_preparer() -> User:
    return factories.person("Ngozi Eze", Role.PREPARER)


def test_access_table_covers_every_url() -> None:
    assert set(ANSWERS) == {pattern.name for pattern in urls.urlpatterns}


@pytest.mark.parametrize("role", opened_by(ROLES, on_both_engines="administrator"))
@pytest.mark.parametrize("name", ANSWERS)
def test_each_role_has_the_access_listed(
    sign_in: Callable[[Client, User], Client],
    request: pytest.FixtureRequest,
    settings: Settings,
    administrator: User,
    name: str,
    role: str,
) -> None:
    method, *answers = ANSWERS[name]
    client = sign_in(Client(), request.getfixturevalue(role))
    settings.GATEWAY_URL = settings.GATEWAY_URL_V4 = UNREACHABLE
    answer = getattr(client, str(method))(address_of(name, administrator))
    assert answer.status_code == answers[ROLES.index(role)]


@pytest.mark.parametrize("name", [n for n, row in ANSWERS.items() if row[0] == "post" and n != "secret"])
def test_get_is_refused_for_views_that_change_data(
    sign_in: Callable[[Client, User], Client], administrator: User, name: str
) -> None:
    client = sign_in(Client(), administrator)
    assert client.get(address_of(name, administrator)).status_code == 405
