"""The page of transactions and its content."""

from typing import Any

PAGE = "/transactions/"


def listed(answer: Any) -> list[str]:
    return [row.transaction.transaction_id for row in answer.context["rows"]]
