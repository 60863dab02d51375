"""Every operation of the document against everything that can be wrong with a body, a query, a method or a path."""

from collections.abc import Iterator

import pytest
import requests

from tests.contract.openapi_document import described, disagreements, request_schema, resolved
from tests.sandbox import hostile_requests
from tests.sandbox_process import SandboxProcess

MEDIA_TYPES = (
    "",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/json; charset=latin-1",
    "application/json; charset=no-such-charset",
    "nonsense;;;=",
)
METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW")
QUERIES = {
    "unknown": "?surprise=1",
    "bad UTF-8": "?%ff=%fe",
    "NUL": "?a%00b=1",
    "brackets": "?page[]=1&page[]=2",
    "a name without a value": "?surprise",
    "many": "?" + "&".join(f"p{number}=1" for number in range(400)),
}
VALUES = {
    "empty": "",
    "a space": "%20",
    "NUL": "%00",
    "bad UTF-8": "%ff%fe",
    "negative": "-1",
    "zero": "0",
    "a decimal": "1.5",
    "an exponent": "1e3",
    "NaN": "NaN",
    "a plus sign": "%2B1",
    "digits of another script": "%D9%A1",
    "huge": "9" * 400,
    "long": "x" * 2000,
    "half a surrogate": "%ED%A0%80",
    "an emoji": "%F0%9F%98%80",
    "SQL": "'%20OR%201=1%20--",
}
PATHS = (
    "",
    "/",
    "/balance/",
    "//balance",
    "/Balance",
    "/balance/nothing",
    "/balance%00",
    "/balance%2Fwithdraw",
    "/balance/../balance",
    "/%ff",
    "/" + "x" * 3000,
)


@pytest.fixture(scope="module")
def attacked(process: SandboxProcess) -> Iterator[SandboxProcess]:
    """One provider under all attacks of this file, from its seeded state; nothing may disturb it.

    Afterwards it is as good as new: the books agree, it answers, and its log holds no traceback of all that.
    """
    process.reset()
    process.options(token_reuse=True)
    output = process.output()
    yield process
    assert process.ledger()["differences"] == []
    assert requests.get(f"{process.url}/balance", headers=process.headers, timeout=30).status_code == 200
    assert "Traceback" not in process.output().removeprefix(output)


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


@pytest.mark.parametrize("name", hostile_requests.WITH_A_BODY)
def test_a_malformed_body_is_refused(attacked: SandboxProcess, session: requests.Session, name: str) -> None:
    wrong = {
        label: hostile_requests.complaint(hostile_requests.send(attacked, session, name, body))
        for label, body in hostile_requests.RAW_BODIES.items()
    }
    assert not {label: why for label, why in wrong.items() if why}


@pytest.mark.parametrize("name", hostile_requests.WITH_A_BODY)
def test_an_invalid_field_is_refused_and_an_unknown_one_ignored(
    attacked: SandboxProcess, session: requests.Session, name: str
) -> None:
    """Which of the two a member is, the document says."""
    schema = request_schema(name)
    wrong = {
        label: hostile_requests.complaint(
            hostile_requests.send(attacked, session, name, hostile_requests.encoded(body)),
            is_refusal=bool(disagreements(schema, body)),
        )
        for label, body in hostile_requests.bad_members(name, attacked)
    }
    assert not {label: why for label, why in wrong.items() if why}


@pytest.mark.parametrize("name", hostile_requests.WITH_A_BODY)
def test_a_body_of_another_media_type_is_refused(
    attacked: SandboxProcess, session: requests.Session, name: str
) -> None:
    body = hostile_requests.encoded(hostile_requests.example(name, attacked))
    for media_type in MEDIA_TYPES:
        response = hostile_requests.send(attacked, session, name, body, **{"Content-Type": media_type})
        assert hostile_requests.complaint(response) is None, media_type
        assert response.status_code == 415, media_type


@pytest.mark.parametrize("name", hostile_requests.WITH_A_BODY)
@pytest.mark.parametrize("size", [1024 * 1024 + 1, 10_000_000])
def test_a_body_over_one_megabyte_is_refused(
    attacked: SandboxProcess, session: requests.Session, name: str, size: int
) -> None:
    response = hostile_requests.send(attacked, session, name, b" " * size)
    assert response.status_code == 413
    assert response.json()["message"] == "the body must be at most 1048576 bytes"


@pytest.mark.parametrize("name", hostile_requests.WITHOUT_A_BODY)
def test_a_malformed_query_is_refused(attacked: SandboxProcess, session: requests.Session, name: str) -> None:
    wrong = {
        query: hostile_requests.complaint(hostile_requests.send(attacked, session, name, query=query))
        for query in QUERIES.values()
    }
    assert not {query: why for query, why in wrong.items() if why}


PARAMETERS = [
    (name, parameter["name"])
    for name, (_, _, each) in described().items()
    for parameter in map(resolved, each.get("parameters", []))
    if parameter["in"] == "query"
]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_an_invalid_query_value_is_refused_or_selects_nothing(
    attacked: SandboxProcess, session: requests.Session, name: str, parameter: str
) -> None:
    answers = {
        label: hostile_requests.send(attacked, session, name, query=f"?{parameter}={value}")
        for label, value in VALUES.items()
    }
    twice = hostile_requests.send(attacked, session, name, query=f"?{parameter}=1&{parameter}=1")
    wrong = {label: hostile_requests.complaint(answer, is_refusal=False) for label, answer in answers.items()}
    assert not {label: why for label, why in wrong.items() if why}
    assert hostile_requests.complaint(twice) is None
    assert "more than once" in twice.json()["message"]


@pytest.mark.parametrize("path", sorted({path for _, path, _ in described().values() if "{" not in path}))
def test_an_unsupported_method_is_refused_with_the_allowed_ones(
    attacked: SandboxProcess, session: requests.Session, path: str
) -> None:
    known = {method for method, where, _ in described().values() if where == path}
    for method in set(METHODS) - known:
        response = session.request(method, attacked.address + path, headers=attacked.headers, timeout=30)
        assert response.status_code == 405, method
        assert hostile_requests.complaint(response) is None, method
        assert set(response.headers["Allow"].split(", ")) == known


@pytest.mark.parametrize("version", ["/v1", "/v2", "/v3", "/v4", "/V2", "/v2.0"])
def test_a_malformed_path_is_refused(
    attacked: SandboxProcess, session: requests.Session, version: str
) -> None:
    for path in PATHS:
        # Prepared by hand, because `requests` tidies a path up.
        request = requests.Request("GET", attacked.address, headers=attacked.headers).prepare()
        request.url = f"{attacked.address}{version}{path}"
        response = session.send(request, timeout=30, allow_redirects=False)
        assert hostile_requests.complaint(response) is None, path
