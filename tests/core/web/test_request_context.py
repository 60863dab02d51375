"""Whose request it is: the id in the answer, the log and the audit entry, and the address it came from."""

import logging
import re
import threading
from collections.abc import Callable

import pytest
from django.db import transaction
from django.test import Client, RequestFactory
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.core.web import request_context
from backoffice.core.web.middleware import client_address
from backoffice.core.web.request_context import CallContext
from tests.accounts import steps


def test_there_is_no_id_or_address_outside_a_request() -> None:
    assert request_context.current() == CallContext("", address=None, by_request=False)


def test_a_job_has_an_id_without_an_address() -> None:
    with request_context.call_context(request_id="outer", address="10.0.0.1", by_request=True):
        assert request_context.current().by_request
        with request_context.call_context(request_id="task-1"):
            assert request_context.current() == CallContext("task-1", address=None, by_request=False)


def test_a_nested_context_is_restored_even_after_an_error() -> None:
    def fail() -> None:
        assert request_context.current() == CallContext("inner", address=None)
        raise ZeroDivisionError

    with request_context.call_context(request_id="outer", address="10.0.0.1"):
        with pytest.raises(ZeroDivisionError), request_context.call_context(request_id="inner"):
            fail()
        assert request_context.current() == CallContext("outer", address="10.0.0.1")
    assert request_context.current().request_id == ""


def test_threads_have_separate_contexts() -> None:
    seen: list[str] = []
    with request_context.call_context(request_id="mine"):
        thread = threading.Thread(target=lambda: seen.append(request_context.current().request_id))
        thread.start()
        thread.join()
    assert seen == [""]


@pytest.mark.django_db
def test_response_and_audit_entry_have_the_same_request_id(client: Client, preparer: User) -> None:
    answers = [steps.give_password(browser, preparer) for browser in (client, Client())]
    ids = [answer["X-Request-ID"] for answer in answers]
    assert all(re.fullmatch(r"[0-9a-f]{12}", request_id) for request_id in ids)
    assert ids[0] != ids[1]
    assert list(Entry.objects.order_by("position").values_list("request_id", flat=True)) == ids
    assert request_context.current().request_id == ""


@pytest.mark.django_db
def test_a_client_cannot_set_the_id_or_the_address(preparer: User) -> None:
    client = Client(
        headers={"X-Request-ID": "forged", "X-Forwarded-For": "203.0.113.9"}, REMOTE_ADDR="198.51.100.7"
    )
    answer = steps.give_password(client, preparer)
    entry = Entry.objects.get()
    assert answer["X-Request-ID"] == entry.request_id != "forged"
    assert entry.address == "198.51.100.7"


@pytest.mark.parametrize(
    ("behind_proxy", "forwarded", "address"),
    [
        (False, None, "198.51.100.7"),
        (False, "203.0.113.9", "198.51.100.7"),
        (True, None, "198.51.100.7"),
        (True, "203.0.113.9", "203.0.113.9"),
        (True, "6.6.6.6, 203.0.113.9", "203.0.113.9"),
        (True, "6.6.6.6,2001:db8::1 ", "2001:db8::1"),
        (True, "203.0.113.9:4711", "203.0.113.9"),
        (True, "2001:DB8:0::1", "2001:db8::1"),
        (True, "[2001:db8::1]", "2001:db8::1"),
        (True, "[2001:db8::1]:4711", "2001:db8::1"),
        (True, "203.0.113.9, unknown", None),
        (True, "203.0.113.9, ", None),
        (True, "[203.0.113.9", None),
        (True, "203.0.113.999", None),
    ],
)
def test_the_address_is_the_peers_or_the_trusted_proxys_value(
    settings: Settings, behind_proxy: bool, forwarded: str | None, address: str | None
) -> None:
    settings.TRUST_FORWARDED_FOR = behind_proxy
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR="198.51.100.7")
    assert client_address(request) == address


def test_a_peer_without_an_address_has_none() -> None:
    assert client_address(RequestFactory().get("/", REMOTE_ADDR="")) is None


@pytest.mark.django_db
def test_a_signed_out_client_without_an_address_is_audited_as_anonymous() -> None:
    with request_context.call_context(request_id="mine", by_request=True), transaction.atomic():
        entry = record(Action.SIGN_IN_LOCKED, actor=None, target="an account")
    assert (entry.actor_label, entry.address) == ("Someone not signed in", "")


@pytest.mark.django_db
def test_log_lines_of_a_request_have_its_id(
    client: Client, preparer: User, log_lines: Callable[[], str]
) -> None:
    steps.give_password(client, preparer, "a wrong password")
    answer = steps.give_password(client, preparer, "another wrong one")
    logging.getLogger("backoffice").info("outside")
    lines = log_lines().splitlines()
    assert [line for line in lines if f"[{answer['X-Request-ID']}]" in line]
    assert lines[-1].endswith("INFO backoffice [-] outside")
