"""Reading a list page by page while the provider changes it."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_gateway import PageReader, PaymentsGateway, ReadFailedError
from payments_gateway.resources import transactions as pages_module
from payments_gateway.resources.transactions import TransactionPage, TransactionRecord
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve

Change = Callable[[list[str]], None]


def record(name: str) -> dict[str, Any]:
    return {"transactionId": name, "amount": 5, "currency": "NGN", "status": "fullfiled"}


def page(names: list[str], number: int, size: int, **claims: Any) -> dict[str, Any]:
    """What an honest provider says of page `number` of these records, but for the claims."""
    shown = names[(number - 1) * size : number * size]
    counts = {"total": len(names), "perPage": size, "page": number, "pages": -(-len(names) // size)}
    return {"data": [record(name) for name in shown], **counts, **claims}


def changing(names: list[str], changes: dict[int, Change], size: int) -> stub.Behaviour:
    """A provider whose list changes before it answers the request of that number (from 1)."""

    def behave(peer: stub.Peer) -> bool:
        asked = peer.read_request()
        changes.get(len(peer.stub.requests), arrive())(names)
        query = parse_qs(urlsplit(asked.target).query)
        body = {"data": page(names, int(query["page"][0]), size)}
        peer.sock.sendall(stub.message(200, body))
        return True

    return behave


def read_all_pages(read: Callable[[int], TransactionPage], per_page: int) -> Iterator[TransactionRecord]:
    reader = PageReader(per_page)
    while not reader.is_done:
        yield from reader.take(read(reader.number))


def read_all(client: PaymentsGateway, size: int) -> Iterator[TransactionRecord]:
    return read_all_pages(lambda number: client.transactions.page(page=number, per_page=size), size)


def read(client: PaymentsGateway, size: int) -> list[str]:
    return [record.transaction_id for record in read_all(client, size)]


def arrive(*names: str) -> Change:
    return lambda known: known.__setitem__(slice(0, 0), names)


def vanish(*names: str) -> Change:
    def change(known: list[str]) -> None:
        for name in names:
            known.remove(name)

    return change


def test_an_unchanged_list_is_read_once(serve: Serve, gateway: Gateway) -> None:
    server = serve(changing(list("ABCDE"), {}, 2))
    assert read(gateway(server.url), 2) == list("ABCDE")
    assert len(server.requests) == 3


def test_records_that_arrive_meanwhile_hide_no_others(serve: Serve, gateway: Gateway) -> None:
    server = serve(changing(list("ABCDE"), {2: arrive("1"), 3: arrive("2", "3", "4")}, 2))
    assert read(gateway(server.url), 2) == list("ABCDE")


def test_records_that_vanish_hide_no_others(serve: Serve, gateway: Gateway) -> None:
    server = serve(changing(list("ABCDEF"), {2: vanish("A"), 3: vanish("B", "C")}, 2))
    assert read(gateway(server.url), 2) == list("ABDEF")


def test_a_record_that_moved_to_a_page_already_read_is_found_there(serve: Serve, gateway: Gateway) -> None:
    server = serve(changing(list("ABCD"), {2: vanish("B")}, 2))
    assert read(gateway(server.url), 2) == list("ABCD")
    asked = [parse_qs(urlsplit(request.target).query)["page"][0] for request in server.requests]
    assert asked == ["1", "2", "1", "2"]


def test_the_end_of_a_list_that_shrinks_under_the_last_page_is_found(serve: Serve, gateway: Gateway) -> None:
    server = serve(changing(list("ABC"), {2: vanish("A")}, 2))
    assert read(gateway(server.url), 2) == list("ABC")


def test_a_record_given_twice_is_yielded_once(serve: Serve, gateway: Gateway) -> None:
    server = serve(
        stub.answer(200, {"data": page(["A", "A", "B"], 1, 3, pages=2, total=4)}),
        stub.answer(200, {"data": page(["A", "A", "B", "B", "C"], 2, 3, pages=2, total=4)}),
    )
    assert read(gateway(server.url), 3) == ["A", "B", "C"]


def test_pages_shorter_than_requested_are_accepted(serve: Serve, gateway: Gateway) -> None:
    names = list("ABCDE")
    server = serve(*(stub.answer(200, {"data": page(names, number, 2)}) for number in (1, 2, 3)))
    assert read(gateway(server.url), 100) == names


def test_a_page_with_a_missing_record_is_detected(serve: Serve, gateway: Gateway) -> None:
    server = serve(
        stub.answer(200, {"data": page(["A"], 1, 2, pages=2, total=3)}),
        stub.answer(200, {"data": page(["A", "B", "C"], 2, 2, pages=2, total=3)}),
    )
    got, error = refused(gateway(server.url), 2)
    assert got == ["A"]
    assert "count is 3, but its list has 2" in error.message


@pytest.mark.parametrize("claims", [{}, {"pages": 1}, {"pages": 0}])
def test_an_empty_list_yields_nothing(serve: Serve, gateway: Gateway, claims: dict[str, Any]) -> None:
    server = serve(stub.answer(200, {"data": page([], 1, 2, **claims)}))
    assert read(gateway(server.url), 2) == []
    assert len(server.requests) == 1


def test_a_page_beyond_the_last_ends_the_list(serve: Serve, gateway: Gateway) -> None:
    server = serve(
        stub.answer(200, {"data": page(["A", "B"], 1, 2, pages=9)}),
        stub.answer(200, {"data": page(["A", "B"], 2, 2, pages=9)}),
    )
    assert read(gateway(server.url), 2) == ["A", "B"]
    assert len(server.requests) == 2


def test_a_temporarily_empty_page_is_requested_again(serve: Serve, gateway: Gateway) -> None:
    names = list("ABCD")
    server = serve(
        stub.answer(200, {"data": page(names, 1, 2)}),
        stub.answer(200, {"data": page(names, 2, 2, data=[])}),
        stub.answer(200, {"data": page(names, 2, 2)}),
    )
    assert read(gateway(server.url), 2) == names


def refused(client: PaymentsGateway, size: int) -> tuple[list[str], ReadFailedError]:
    """What was read before the reading was given up, and why."""
    got: list[str] = []
    with pytest.raises(ReadFailedError) as caught:
        got.extend(record.transaction_id for record in read_all(client, size))
    return got, caught.value


def test_a_page_that_stays_empty_is_an_error(serve: Serve, gateway: Gateway) -> None:
    names = list("ABCD")
    server = serve(
        stub.answer(200, {"data": page(names, 1, 2)}), stub.answer(200, {"data": page(names, 2, 2, data=[])})
    )
    _, error = refused(gateway(server.url), 2)
    assert "count is 4, but page 2 of 2 is empty" in str(error)
    assert len(server.requests) < 10


def test_an_early_last_page_is_an_error(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, {"data": page(list("ABCD"), 1, 2, pages=1)}))
    _, error = refused(gateway(server.url), 2)
    assert "count is 4, but its list has 2 up to page 1" in str(error)


def test_a_repeated_page_is_refused(serve: Serve, gateway: Gateway) -> None:
    """As when the provider knows the number of the page by another name."""
    server = serve(stub.answer(200, {"data": page(list("ABCD"), 1, 2)}))
    _, error = refused(gateway(server.url), 2)
    assert "returned page 1 instead of page 2" in str(error)


def test_an_oscillating_total_is_an_error(serve: Serve, gateway: Gateway) -> None:
    names = list("ABCDEF")

    def replicas(peer: stub.Peer) -> bool:
        asked = int(parse_qs(urlsplit(peer.read_request().target).query)["page"][0])
        total = 6 if asked == 1 else 5
        peer.sock.sendall(stub.message(200, {"data": page(names, asked, 2, total=total)}))
        return True

    server = serve(replicas)
    _, error = refused(gateway(server.url), 2)
    assert "keeps getting shorter" in str(error)
    assert len(server.requests) < 20


def pages_of(bodies: Iterator[dict[str, Any]]) -> Callable[[int], TransactionPage]:
    return lambda _number: TransactionPage.model_validate(next(bodies))


@pytest.mark.parametrize("jump", [6_000, -6_000])
def test_a_shift_beyond_the_remembered_records_is_an_error(jump: int) -> None:
    names = [f"T{number}" for number in range(20_000)]
    bodies = iter([page(names, 1, 100), page(names, 2, 100, total=20_000 + jump)])
    with pytest.raises(ReadFailedError, match="changed by 6000"):
        list(read_all_pages(pages_of(bodies), 100))


def test_steps_back_beyond_what_is_remembered_are_refused() -> None:
    names = [f"T{number}" for number in range(30_000)]
    totals = [30_000] * 100 + [25_100, 25_100 - 4_900]
    asked: list[int] = []

    def read(number: int) -> TransactionPage:
        asked.append(number)
        return TransactionPage.model_validate(page(names, number, 100, total=totals[len(asked) - 1]))

    with pytest.raises(ReadFailedError, match="disappeared"):
        list(read_all_pages(read, 100))
    assert asked[-3:] == [100, 101, 52]


def test_the_number_of_remembered_records_is_bounded() -> None:
    names = [f"T{number}" for number in range(25_000)]
    reader = PageReader(500)
    while not reader.is_done:
        reader.take(TransactionPage.model_validate(page(names, reader.number, 500)))
        assert len(reader._seen) <= pages_module.WINDOW
    assert list(reader._seen) == names[-pages_module.WINDOW :]


CHANGES = st.lists(
    st.tuples(st.integers(0, 3), st.sets(st.integers(0, 30), max_size=3)), min_size=0, max_size=12
)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 25), st.integers(1, 6), CHANGES)
def test_records_listed_throughout_are_yielded_exactly_once(
    length: int, size: int, changes: list[tuple[int, set[int]]]
) -> None:
    """New ones at the beginning, vanishing anywhere, both between the same two answers."""
    names = [f"T{number}" for number in range(length)]
    lasting = set(names)
    pending = iter(changes)
    born = 0

    def read(number: int) -> TransactionPage:
        nonlocal names, born
        answer = TransactionPage.model_validate(page(names, number, size))
        arrived, gone = next(pending, (0, set[int]()))
        names = [name for at, name in enumerate(names) if at not in gone]
        lasting.intersection_update(names)
        names = [f"N{born + at}" for at in range(arrived)] + names
        born += arrived
        return answer

    got: list[TransactionRecord] = []
    try:
        got.extend(read_all_pages(read, size))
    except ReadFailedError:
        assert len(changes) >= 5
        return
    ids = [record.transaction_id for record in got]
    assert len(set(ids)) == len(ids)
    assert lasting <= set(ids)
