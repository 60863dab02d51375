"""Fault 20: slow and half-open connections, refused sign-ins and a huge upload, while people work."""

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import pytest
import requests
from django.conf import settings
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import RefusedSignIns, StaffSession, User
from backoffice.accounts.protection import lockout
from backoffice.accounts.protection.lockout import record_refusals_due
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.models import LeaseRow
from backoffice.operations.models.monitoring import current_pause
from tests import factories
from tests.faults.harness.processes import MakeProcesses

pytestmark = pytest.mark.django_db(transaction=True)
WITHIN = 20.0  # seconds, on a busy machine: a page that waits for a slow client waits for 30
SLOW = 40
REFUSED = 600
BEGUN = (
    b"",
    b"GET / HTTP/1.1\r\nHost: ",
    b"POST /account/sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500\r\n\r\nemail=",
    b"POST /account/sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nemail",
)


@contextmanager
def slow_connections(port: int) -> Iterator[None]:
    with ExitStack() as stack:
        for number in range(SLOW):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=WITHIN))
            connection.sendall(BEGUN[number % len(BEGUN)])
        yield


class Browser:
    """What a browser does without scripts, from an address of its own."""

    def __init__(self, web: str, *, address: str = "192.0.2.200", session: str = "") -> None:
        self.web, self.http = web, requests.Session()
        self.http.headers["X-Forwarded-For"] = address
        if session:
            self.http.cookies.set(settings.SESSION_COOKIE_NAME, session)

    def get(self, path: str) -> requests.Response:
        return self.http.get(self.web + path, timeout=WITHIN, allow_redirects=False)

    def post(self, path: str, **typed: str) -> requests.Response:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get(path).text)
        assert token is not None
        typed["csrfmiddlewaretoken"] = token[1]
        return self.http.post(self.web + path, typed, timeout=WITHIN, allow_redirects=False)


def refused(web: str, number: int) -> int:
    """An attempt of a stranger: half of them from one address, the others from one each."""
    address = "198.51.100.9" if number % 2 else f"10.0.{number // 250}.{number % 250}"
    email = f"nobody{number}@countersign.example"
    return (
        Browser(web, address=address)
        .post("/account/sign-in/", email=email, password="wrong horse battery")
        .status_code
    )


def upload(port: int) -> bytes:
    """The answer to the head of an upload of 300 MB."""
    with socket.create_connection(("127.0.0.1", port), timeout=WITHIN) as connection:
        head = "POST /batches/new/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        connection.sendall(f"{head}Content-Length: 300000000\r\n\r\n".encode())
        return connection.recv(4096)


def test_strangers_neither_stop_the_pages_nor_fill_the_database(
    make_product: MakeProcesses, preparer: User, approver: User
) -> None:
    product = make_product(COUNTERSIGN_BEHIND_PROXY="true")
    product.start_web()
    port = product.stack.web_port
    session = factories.sign_in(Client(), approver).cookies[settings.SESSION_COOKIE_NAME].value
    person = Browser(product.web, session=session)
    entries, sessions = Entry.objects.count(), StaffSession.objects.count()

    with slow_connections(port), ThreadPoolExecutor(6) as strangers:
        attempts = [strangers.submit(refused, product.web, number) for number in range(REFUSED)]
        seen = 0
        while not all(attempt.done() for attempt in attempts):
            assert person.get("/").status_code == 200
            assert upload(port).startswith(b"HTTP/1.1 413 ")
            seen += 1
        assert {attempt.result() for attempt in attempts} <= {422, 429}
        assert seen > 1
        assert person.post(reverse("operations:pause"), reason="Strangers").status_code == 302

    assert current_pause() is not None
    assert Entry.objects.count() <= entries + 2  # the pause, and what pausing records
    assert StaffSession.objects.count() == sessions
    record_refusals_due()
    RefusedSignIns.objects.update(since=F("since") - lockout.LOCKED_FOR)
    LeaseRow.objects.update(held_until=timezone.now() - timedelta(seconds=1))
    record_refusals_due()
    assert not RefusedSignIns.objects.exists()
    assert Entry.objects.filter(action=Action.SIGN_INS_REFUSED).count() == 1
