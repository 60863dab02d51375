"""A provider with a list of transactions that has many pages and changes while it is read, as a test wants."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.stub_provider import Answer, StubProvider


class LongList(StubProvider):
    """`listed` are its records, the newest first; `asked` the numbers of the pages that were asked for, `limits` their
    sizes, of which it keeps to those below `per_page`.

    `before` is called with each of these numbers before the page is made. What `spoilt` says of a page is answered
    instead of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[dict[str, Any]] = []
        self.asked: list[int] = []
        self.limits: list[int] = []
        self.per_page = 100
        self.before: Callable[[int], object] = lambda _: None
        self.spoilt: dict[int, Answer] = {}

    def answer_get(self, path: str) -> Answer:
        if not path.startswith("/v2/transaction?"):
            return super().answer_get(path)
        query = parse_qs(urlsplit(path).query)
        number, limit = int(query.get("page", ["1"])[0]), int(query.get("limit", ["20"])[0])
        self.asked.append(number)
        self.limits.append(limit)
        self.before(number)
        if number in self.spoilt:
            return self.spoilt[number]
        per_page, total = min(limit, self.per_page), len(self.listed)
        first = (number - 1) * per_page
        page = {
            "data": self.listed[first : first + per_page],
            "total": total,
            "perPage": per_page,
            "page": number,
            "pages": -(-total // per_page),
        }
        return 200, json.dumps({"success": True, "message": "ok", "data": page})

    def grow(self, *names: str) -> None:
        """Let records arrive at its beginning, the last one as the newest."""
        self.listed = [member(name) for name in reversed(names)] + self.listed

    def names(self) -> set[str]:
        """The ids of what it lists."""
        return {record["transactionId"] for record in self.listed}


def member(name: str, **members: Any) -> dict[str, Any]:
    """A record as the provider reports it."""
    fields = {
        "transactionId": name,
        "amount": "12.50",
        "currency": "NGN",
        "type": "deposit",
        "status": "fullfiled",
        "fee": "0.25",
        "createdAt": "2026-03-04T05:06:07Z",
    }
    return fields | members


def numbered(count: int) -> list[dict[str, Any]]:
    """So many records, the newest first."""
    return [member(f"T{number:05d}") for number in range(count, 0, -1)]
