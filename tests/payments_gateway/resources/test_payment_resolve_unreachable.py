"""No id and no override leads to GET /payment/resolve, the read that moves money."""

from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from payments_gateway import GatewayError, NotSentError, ProviderProfile
from payments_gateway.operations import OPERATIONS
from payments_gateway.profile.values import CAPABILITIES
from payments_gateway.resources.extras import EXTRA_OPERATIONS
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.extra_reads import ALL_ON, BY_ID, READS, RECORD


@pytest.mark.parametrize(
    ("identity", "segment"),
    [
        ("T-1", "T-1"),
        ("a b".replace(" ", "+"), "a%2Bb"),
        ("a?b=c#d", "a%3Fb%3Dc%23d"),
        ("Ż:1;v=2", "%C5%BB%3A1%3Bv%3D2"),
    ],
)
def test_an_id_is_one_path_segment(serve: Serve, gateway: Gateway, identity: str, segment: str) -> None:
    server = serve(stub.answer(200, {**RECORD, "transactionId": identity}))
    assert gateway(server.url, profile=ALL_ON).extras.transaction(identity).transaction_id == identity
    assert server.requests[0].target == f"/v2/transaction/{segment}"


@pytest.mark.parametrize(
    "identity",
    [
        *(
            "",
            ".",
            "..",
            "/",
            "a/b",
            "../payment/resolve",
            "..\\payment",
            "a\\b",
            "%2e%2e",
            "a%2Fb",
            " ",
            "a b",
        ),
        *("a\r\nX-Evil: 1", "a\x00", "x" * 129, "resolve", "RESOLVE", "resolve?x=1", "resolve;x", "\ud800"),
    ],
)
def test_an_invalid_id_is_not_requested(serve: Serve, gateway: Gateway, identity: str) -> None:
    server = serve(stub.answer(200, RECORD))
    client = gateway(server.url, profile=ALL_ON)
    for read in BY_ID.values():
        with pytest.raises(NotSentError, match="Nothing was asked"):
            read(client, identity)
    assert server.connections == 0


def test_the_payment_resolve_path_is_in_no_table() -> None:
    paths = [entry.path for entry in (*OPERATIONS, *EXTRA_OPERATIONS.values())]
    assert not [path for path in paths if "payment/resolve" in path]


def test_no_id_reaches_the_payment_resolve_path(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(404, {"success": False, "message": "no such id"}))
    client = gateway(server.url, profile=ALL_ON)

    @given(identity=st.text(max_size=40) | st.text("./\\%25eERESOLVresolv;?#", max_size=12))
    @example("resolve")
    @example("%72esolve")
    @example("./resolve")
    @example("../payment/resolve")
    @example("..%2fpayment%2fresolve")
    @settings(deadline=None)
    def ask(identity: str) -> None:
        server.requests.clear()
        for read in BY_ID.values():
            with pytest.raises(GatewayError):
                read(client, identity)
        for request in server.requests:
            segments = request.target.split("/")
            assert segments[:2] == ["", "v2"]
            assert segments[2] in BY_ID
            assert [unquote(segment) for segment in segments[3:]] == [identity]
            assert "resolve" not in unquote(unquote(request.target)).casefold()

    ask()


PATHS = [point.name for point in ProviderProfile().open_points() if point.name.endswith("_path")]
AROUND_A_CORNER = (
    "/payment/resolve",
    "/Payment/RESOLVE",
    "/payment/resolve/",
    "/payment//resolve",
    "/payment/./resolve",
    "/payment/x/../resolve",
    "/payment/resolve/x/..",
    "/payment/{paymentId}/../resolve",
    "/payment/{paymentId}/resolve",
    "/payment/res{paymentId}",
    "/payment/{a}{b}",
    "/{a}/{b}",
    "/payment/{paymentId}/..",
    "/payment/%72esolve",
    "/payment%2Fresolve",
    "/payment\\resolve",
    "/payment/resolve?x=1",
    "/payment/resolve#x",
    "/payment/resolve;x",
    "payment/resolve",
    "//elsewhere.example/payment",
    "/payment/resolve\n",
)


@pytest.mark.parametrize("path", AROUND_A_CORNER)
@pytest.mark.parametrize("name", PATHS)
def test_an_override_with_the_payment_resolve_path_is_refused(name: str, path: str) -> None:
    with pytest.raises(ValueError, match=name):
        ProviderProfile().overridden({name: path})
    with pytest.raises(ValueError, match=name):
        ProviderProfile.model_validate({name: path})


SEGMENTS = (
    "payment",
    "resolve",
    "res",
    "olve",
    ".",
    "..",
    "",
    "{id}",
    "{",
    "}",
    "%72",
    "%2f",
    "\\",
    "?",
    ";",
)
SEGMENT = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map("".join)
PATH = st.lists(st.sampled_from(SEGMENTS) | SEGMENT, min_size=1, max_size=4).map(
    lambda found: "/" + "/".join(found)
)


def test_no_accepted_override_reaches_the_payment_resolve_path(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(404, {"success": False, "message": "no such id"}))

    @given(path=PATH, identity=st.sampled_from(["resolve", "olve", "esolve", "payment", "..", "T-1"]))
    @example("/{id}/olve", "payment")
    @example("/payment/{id}", "resolve")
    @example("/{id}", "payment")
    @settings(deadline=None, max_examples=300)
    def ask(path: str, identity: str) -> None:
        server.requests.clear()
        for name in CAPABILITIES:
            try:
                profile = ALL_ON.overridden({f"extra_{name}_path": path})
            except ValueError:
                continue
            client = gateway(server.url, profile=profile)
            read = BY_ID.get(name, lambda client, _, name=name: READS[name](client))
            with pytest.raises(GatewayError):
                read(client, identity)
            client.close()
        for request in server.requests:
            target = unquote(unquote(request.target)).casefold()
            assert "resolve" not in target
            assert ".." not in target

    ask()
