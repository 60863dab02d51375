"""Calls of the table, each with an answer of the test's own."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.payments_gateway import stub
from tests.payments_gateway.calls import CALLS
from tests.payments_gateway.conftest import Gateway, Serve

NOON = datetime(2025, 11, 21, 12, tzinfo=UTC)

Answered = Any


@pytest.fixture
def answered(serve: Serve, gateway: Gateway) -> Answered:
    """Make a call of the table, with this body as its answer."""

    def call(name: str, body: object, **settings: Any) -> Any:
        return CALLS[name].call(gateway(serve(stub.answer(200, body)).url, **settings))

    return call
