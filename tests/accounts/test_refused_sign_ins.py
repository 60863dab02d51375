"""Refused sign-ins: lock-out by account and by address, checks at once, and their record outside and inside the log."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import auth
from django.db import connection
from django.db.models import F, Sum
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import RefusedSignIns, User
from backoffice.accounts.protection import lockout
from backoffice.accounts.protection.lockout import record_lockouts_due, record_refusals_due
from backoffice.audit import log
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.models import LeaseRow
from tests.accounts import steps

pytestmark = pytest.mark.django_db
ADDRESS = "127.0.0.1"


@pytest.fixture(autouse=True)
def _unhashed(settings: Any) -> None:
    """Hundreds of passwords are checked here."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def attempt(email: str, address: str = ADDRESS) -> Any:
    typed = {"email": email, "password": "wrong horse battery"}
    return Client(REMOTE_ADDR=address).post(reverse("accounts:sign_in"), typed)


def addresses() -> Iterator[str]:
    return (f"10.0.{number // 250}.{number % 250 + 1}" for number in range(1000))


def let_time_pass(by: timedelta) -> None:
    RefusedSignIns.objects.update(since=F("since") - by)
    LeaseRow.objects.update(held_until=timezone.now() - timedelta(seconds=1))


def test_an_account_is_locked_out_for_every_address(preparer: User, approver: User) -> None:
    for address, _ in zip(addresses(), range(lockout.WRONG_FOR_ACCOUNT), strict=False):
        attempt(preparer.email, address)
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert steps.give_password(elsewhere, preparer).status_code == 429
    assert steps.give_password(elsewhere, approver).status_code == 302


def test_the_operator_ends_the_lock_out_of_one_account(preparer: User, approver: User) -> None:
    for address, _ in zip(addresses(), range(lockout.WRONG_FOR_ACCOUNT), strict=False):
        attempt(preparer.email, address)
        attempt(approver.email, address)
    refused = RefusedSignIns.objects.aggregate(Sum("refused"))
    assert lockout.reset_account(preparer.email.upper()) == lockout.WRONG_FOR_ACCOUNT
    assert RefusedSignIns.objects.aggregate(Sum("refused")) == refused
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert steps.give_password(elsewhere, approver).status_code == 429
    assert steps.give_password(elsewhere, preparer).status_code == 302


def test_an_address_is_locked_out_for_every_account(preparer: User) -> None:
    for number in range(lockout.WRONG_FOR_ADDRESS):
        attempt(f"nobody{number}@countersign.example", "192.0.2.7")
    assert steps.give_password(Client(REMOTE_ADDR="192.0.2.7"), preparer).status_code == 429
    assert steps.give_password(Client(), preparer).status_code == 302


def test_the_addresses_of_one_ipv6_network_count_as_one(preparer: User) -> None:
    for number in range(lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS):
        attempt(preparer.email, f"2001:db8::{number + 1}")
    assert steps.give_password(Client(REMOTE_ADDR="2001:db8::ffff"), preparer).status_code == 429
    assert steps.give_password(Client(REMOTE_ADDR="2001:db8:0:1::1"), preparer).status_code == 302


def test_a_lockout_ends_after_half_an_hour_and_attempts_do_not_extend_it(preparer: User) -> None:
    for _ in range(lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS):
        attempt(preparer.email)
    let_time_pass(timedelta(minutes=29))
    assert attempt(preparer.email).status_code == 429
    let_time_pass(timedelta(minutes=1))
    assert steps.give_password(Client(), preparer).status_code == 302


def test_the_correct_password_resets_the_count(preparer: User) -> None:
    for _ in range(3):
        for _ in range(lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS - 1):
            assert attempt(preparer.email).status_code == 422
        assert steps.give_password(Client(), preparer).status_code == 302


def test_an_invented_account_costs_what_a_real_one_costs(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    authenticate = auth.authenticate

    def counted(*args: Any, **credentials: Any) -> Any:
        checked.append(credentials["email"])
        return authenticate(*args, **credentials)

    monkeypatch.setattr(auth, "authenticate", counted)
    for _ in range(lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS + 1):
        attempt("another@countersign.example")
    costs = []
    for email in (preparer.email, "nobody@countersign.example"):
        for _ in range(lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS - 1):
            attempt(email)
        with CaptureQueriesContext(connection) as checked_one:
            assert attempt(email).status_code == 429
        before = len(checked)
        with CaptureQueriesContext(connection) as turned_away:
            assert attempt(email).status_code == 429
        assert len(checked) == before
        costs.append((len(checked_one), len(turned_away)))
    assert costs[0] == costs[1]


def test_six_hundred_refusals_add_no_rows_that_last_and_lock_no_log(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked() -> None:
        raise AssertionError("the head of the log was locked")

    with monkeypatch.context() as patched:
        patched.setattr(log, "_locked_head", locked)
        for number in range(600):
            attempt(f"nobody{number}@countersign.example")
    assert RefusedSignIns.objects.count() <= lockout.WRONG_FOR_ADDRESS + 1

    record_refusals_due()
    entry = Entry.objects.get()
    assert entry.action == Action.SIGN_INS_REFUSED
    assert (entry.detail["refused"], entry.detail["addresses"]) == (600, 1)
    assert entry.detail["most_refused_addresses"] == {ADDRESS: 600}

    let_time_pass(lockout.LOCKED_FOR)
    record_refusals_due()
    assert not RefusedSignIns.objects.exists()
    assert Entry.objects.count() == 1


def test_refusals_are_recorded_once_in_ten_minutes_and_name_real_accounts_only(preparer: User) -> None:
    attempt("typed-a-password-here@countersign.example")
    attempt(preparer.email)
    record_refusals_due()
    attempt(preparer.email)
    record_refusals_due()
    assert [entry.detail["refused"] for entry in Entry.objects.all()] == [2]
    let_time_pass(timedelta(minutes=10))
    record_refusals_due()
    second = Entry.objects.order_by("position").last()
    assert second is not None
    assert second.detail["refused"] == 1
    assert second.detail["most_refused_accounts"] == {preparer.email: 1}
    assert "typed-a-password" not in str(list(Entry.objects.values()))


def test_a_person_who_is_locked_out_is_recorded_once(preparer: User) -> None:
    for _ in range(lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS - 1):
        attempt(preparer.email)
    assert record_lockouts_due() == 0
    attempt(preparer.email)
    for _ in range(lockout.WRONG_FOR_ACCOUNT_AND_ADDRESS):
        attempt("nobody@countersign.example")
    let_time_pass(timedelta(minutes=1))
    assert record_lockouts_due() == 1
    let_time_pass(timedelta(minutes=1))
    assert record_lockouts_due() == 0
    entry = Entry.objects.get()
    assert (entry.action, entry.target_label) == (Action.SIGN_IN_LOCKED, preparer.full_name)


def test_few_passwords_are_checked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockout, "WAIT_SECONDS", 60.0)
    may_end, results = threading.Event(), []

    def check() -> None:
        try:
            with lockout.password_check():
                results.append("checked")
                may_end.wait(60)
        except lockout.TooManyChecksError:
            results.append("refused")
            may_end.set()

    threads = [threading.Thread(target=check) for _ in range(lockout.MAX_WAITING + 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == ["checked"] * (lockout.MAX_WAITING + 1) + ["refused"]


def test_a_sign_in_that_cannot_be_checked_now_says_so_and_counts_nothing(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lockout, "WAIT_SECONDS", 0.01)
    with lockout.password_check():
        answer = steps.give_password(Client(), preparer)
    assert answer.status_code == 429
    assert "Wait a few seconds" in answer.content.decode()
    assert not RefusedSignIns.objects.exists()
    assert steps.give_password(Client(), preparer).status_code == 302
