"""The pages of Settings with 500 people, 200 rules and 50,000 recipients keep their budgets."""

import gzip
import time
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import GroupMembership, StaffGroup, User
from backoffice.accounts.roles import Role
from backoffice.recipients.models import RecipientVersion
from tests import factories
from tests.append_only.triggers import lifted
from tests.policies.versions import group, of_group, put_in_effect
from tests.recipients import registered

pytestmark = pytest.mark.django_db

PEOPLE, RULES, RECIPIENTS = 500, 200, 50_000
QUERIES, HTML = 6, 14_000
SECONDS = 1.0  # of the processor, however busy the machine is; no page takes a third of it


def people() -> StaffGroup:
    """Approvers, every other of them in one group."""
    treasury = group("Treasury")
    made = User.objects.bulk_create(
        User(email=f"person{number}@example.com", full_name=f"Person {number:03} Lastname")
        for number in range(PEOPLE)
    )
    role = Group.objects.get(name=Role.APPROVER)
    through = User.groups.through
    through.objects.bulk_create(through(user_id=one.pk, group_id=role.pk) for one in made)
    now = timezone.now()
    GroupMembership.objects.bulk_create(
        GroupMembership(user=one, group=treasury, since=now, operation=uuid.uuid4()) for one in made[::2]
    )
    return treasury


def rules(treasury: StaffGroup) -> list[dict[str, Any]]:
    """Only the last of them fits the payment of 250,000.00 that the test prepares."""
    of_treasury = {"needed": 2, "of": of_group(treasury)}
    return [
        {
            "when": {
                "kinds": ["withdrawal"],
                "currencies": {"codes": ["NGN"]},
                "amount": {"above": 250_000 + RULES - 2 - number},
                "recipient": "new",
            },
            "levels": [{"needed": 1, "of": {"role": "Approver"}}, of_treasury],
        }
        for number in range(RULES)
    ]


def test_pages_keep_their_budgets(
    preparer: User,
    approver: User,
    administrator: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("A deployment of this size has PostgreSQL")
    put_in_effect(*rules(people()))
    with lifted(connection):  # they would look for an earlier version of each recipient
        registered.many(preparer, approver, RECIPIENTS)
    operation = factories.prepared_to_another_account(preparer)
    person = User.objects.get(email="person6@example.com")
    recipient = RecipientVersion.objects.get(alias="Supplier 40000")
    as_administrator, as_preparer = (factories.sign_in(Client(), one) for one in (administrator, preparer))
    pages = {
        "/settings/team/": as_administrator,
        "/settings/team/?q=person+4": as_administrator,
        f"/settings/team/{person.pk}/": as_administrator,
        "/settings/team/access-review/": as_administrator,
        "/settings/policies/": as_administrator,
        "/settings/policies/draft/": as_administrator,
        "/settings/policies/draft/rules/150/": as_administrator,
        "/settings/policies/draft/lists/": as_administrator,
        f"/settings/policies/try/?kind=withdrawal&amount=500&currency=NGN&preparer={preparer.pk}": as_preparer,
        "/settings/recipients/": as_preparer,
        "/settings/recipients/?q=holder+4": as_preparer,
        "/settings/recipients/?q=unknown": as_preparer,
        recipient.get_absolute_url(): as_preparer,
        operation.get_absolute_url(): as_preparer,
    }
    over = []
    for address, client in pages.items():
        client.get(address)
        began = time.process_time()
        with django_assert_max_num_queries(QUERIES):
            answer = client.get(address)
        seconds = time.process_time() - began
        size = len(gzip.compress(answer.content))
        if answer.status_code != 200 or size > HTML or seconds > SECONDS:
            over.append((address, answer.status_code, size, seconds))
    assert over == []
    page = as_preparer.get(operation.get_absolute_url())
    assert "Person 018 Lastname and 481 more" in page.content.decode()
    waiting = page.context["waiting"]
    assert ([level.missing for level in waiting.levels], len(waiting.able)) == ([1, 2], PEOPLE + 1)
