"""What travels compressed, and what does not."""

import gzip
from collections.abc import Callable
from http import HTTPStatus

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.web.middleware import PageCompressionMiddleware

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
ASKED = {"Accept-Encoding": "br;q=1.0, gzip;q=0.8"}
PAGE = "/account/sign-in/"


def compressed(response: HttpResponse) -> HttpResponse:
    """What the middleware makes of a view's answer to somebody who takes gzip."""
    request = RequestFactory().get("/", headers=ASKED)
    answer = PageCompressionMiddleware(lambda _request: response)(request)
    assert isinstance(answer, HttpResponse)
    return answer


@pytest.mark.parametrize(("path", "status"), [(PAGE, HTTPStatus.OK), ("/nowhere/", HTTPStatus.NOT_FOUND)])
def test_a_page_is_compressed_when_requested(client: Client, path: str, status: int) -> None:
    plain, packed = client.get(path), client.get(path, headers=ASKED)
    assert plain.status_code == packed.status_code == status
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content).startswith(plain.content[:100])
    assert int(packed["Content-Length"]) == len(packed.content) < len(plain.content)


def test_a_page_is_not_compressed_unless_requested_and_varies_by_encoding(client: Client) -> None:
    plain, packed = client.get(PAGE), client.get(PAGE, headers=ASKED)
    assert "Content-Encoding" not in plain
    for answer in (plain, packed):
        varies = [name.strip() for name in answer["Vary"].split(",")]
        assert varies.count("Accept-Encoding") == 1
        assert "Cookie" in varies


def test_the_same_page_has_no_constant_length_and_no_constant_csrf_token(client: Client) -> None:
    """What protects against BREACH: the secret is masked anew, and random bytes are added."""
    answers = [client.get(PAGE, headers=ASKED) for _ in range(20)]
    assert len({len(answer.content) for answer in answers}) > 1
    assert len({gzip.decompress(answer.content) for answer in answers}) == len(answers)


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("text/html; charset=utf-8", "gzip"),
        ("application/json", "gzip"),
        ("text/csv; charset=utf-8", None),
        ("image/png", None),
        ("application/octet-stream", None),
        ("text/html-fragment", None),
    ],
)
def test_only_pages_and_json_are_compressed(content_type: str, encoding: str | None) -> None:
    answer = compressed(HttpResponse("word " * 100, content_type=content_type))
    assert answer.get("Content-Encoding") == encoding


def test_a_strong_etag_becomes_weak_when_compressed() -> None:
    answer = compressed(HttpResponse("word " * 100, headers={"ETag": '"1"'}))
    assert (answer["Content-Encoding"], answer["ETag"]) == ("gzip", 'W/"1"')
    assert compressed(HttpResponse("short", headers={"ETag": '"1"'}))["ETag"] == '"1"'


def test_a_streamed_file_is_not_compressed(client: Client, sign_in: SignIn, auditor: User) -> None:
    answer = sign_in(client, auditor).get("/reports/operations.csv", headers=ASKED)
    assert answer.streaming
    assert "Content-Encoding" not in answer
    ended = Entry.objects.filter(action=Action.REPORT_EXPORTED)
    chunks = iter(answer)
    assert next(chunks).decode("utf-8-sig").startswith("reference,")
    assert not ended.exists(), "The first bytes waited for the last"
    assert list(chunks) == []
    assert ended.exists()
