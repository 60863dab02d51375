"""Where an answer differs from what is written down, in words."""

import copy
from decimal import Decimal
from typing import Any

import pytest

from payments_gateway.diagnostics import schema_differences
from payments_gateway.operations import OPERATIONS, CallEffect

BALANCE = {
    "totalRecieved": Decimal("10.5"),
    "totalSent": 0,
    "txnCount": 1,
    "toCurrency": "NGN",
    "amount": Decimal("10.5"),
    "formattedAmount": Decimal("10.5"),
}
GOOD = {"success": True, "message": "ok", "data": {"balances": [BALANCE]}}


def spoilt(change: Any) -> dict[str, Any]:
    answer = copy.deepcopy(GOOD)
    change(answer)
    return answer


def test_a_response_as_specified_has_no_differences() -> None:
    assert schema_differences("balances.list", GOOD) == []


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        (lambda answer: answer.update(colour="x"), "the answer has unknown colour"),
        (lambda answer: answer.pop("message"), "the answer lacks message"),
        (lambda answer: answer.update(message=None), "message is null, not a text"),
        (lambda answer: answer.update(success=False), "success is none of True"),
        (lambda answer: answer.update(data=[]), "data is a list, not an object"),
        (lambda answer: answer["data"].update(balances={}), "data.balances is an object, not a list"),
        (lambda answer: answer["data"]["balances"].append(1), "data.balances[] is a number, not an object"),
        (
            lambda answer: answer["data"]["balances"][0].update(amount="10.5"),
            "data.balances[].amount is a text, not a number",
        ),
        (
            lambda answer: answer["data"]["balances"][0].update(txnCount=Decimal("1.5")),
            "data.balances[].txnCount is a number, not a whole number",
        ),
        (
            lambda answer: answer["data"]["balances"][0].update(txnCount=True),
            "data.balances[].txnCount is true or false, not a whole number",
        ),
        (
            lambda answer: answer["data"]["balances"][0].update(toCurrency="EUR"),
            "data.balances[].toCurrency is none of NGN, USD, USDT",
        ),
        (
            lambda answer: answer["data"]["balances"][0].pop("totalSent"),
            "data.balances[] lacks totalSent",
        ),
    ],
)
def test_differences_are_named(change: Any, remark: str) -> None:
    assert schema_differences("balances.list", spoilt(change)) == [remark]


def test_a_difference_is_reported_once() -> None:
    answer = {**GOOD, "data": {"balances": [{**BALANCE, "amount": "1"} for _ in range(50)]}}
    assert schema_differences("balances.list", answer) == ["data.balances[].amount is a text, not a number"]


def test_the_number_of_unknown_fields_reported_is_limited() -> None:
    remarks = schema_differences(
        "balances.list", {**GOOD, **{f"member{number}": 1 for number in range(1000)}}
    )
    assert len(remarks) == 1
    assert remarks[0].endswith("member19 and 980 more")


def test_the_number_of_differences_reported_is_limited() -> None:
    balances = [{**BALANCE, f"member{number}": 1} for number in range(100)]
    remarks = schema_differences("balances.list", {**GOOD, "data": {"balances": balances}})
    assert len(remarks) == 13
    assert remarks[-1] == "and 88 more"


def test_unknown_fields_are_reported_on_one_line_without_values() -> None:
    remarks = schema_differences(
        "balances.list", {**GOOD, "a\n\x1b[31m" + "x" * 500: "canary", "message": ["canary"]}
    )
    assert all(line.isprintable() and len(line) < 70 for line in remarks)
    assert "canary" not in " ".join(remarks)


def test_every_specified_read_has_a_schema() -> None:
    for operation in OPERATIONS:
        if operation.effect is CallEffect.READS:
            assert schema_differences(operation.name, {}), operation.name


def test_reads_without_a_schema_have_no_differences() -> None:
    assert schema_differences("horoscopes.read", {"data": 1}) == []
