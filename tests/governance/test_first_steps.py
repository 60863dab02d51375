"""The first steps of a new installation on the overview of an administrator, until the first payment."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from backoffice.accounts.models import User
from tests import stub_provider
from tests.governance.test_team import steps_done
from tests.operations.unknown_outcomes import lost

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]


def test_the_overview_lists_the_first_steps_to_administrators_until_the_first_payment(
    administrator: User, approver: User, preparer: User, sign_in: SignIn, settings: Settings
) -> None:
    assert steps_done(sign_in(Client(), approver).get("/")) == []
    client = sign_in(Client(), administrator)
    assert steps_done(client.get("/")) == [False, False, True, False, False, False, False]
    with stub_provider.running() as provider:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = provider.url, provider.url_v4
        lost(provider, preparer, approver)
    assert steps_done(client.get("/")) == []
    assert steps_done(client.get(reverse("governance:team")))[-1]
