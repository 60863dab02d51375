"""P2 and P6: the list of transactions for every filter and at any depth, its size, queries and rendering; the
overview.
"""

import gzip
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias
from urllib.parse import quote, urljoin

from tools.bench.databases import BenchDatabase, BenchError
from tools.bench.measure import Measure, Sample, in_turns, medians_of
from tools.bench.web_process import WebProcess, web_process

PageSides: TypeAlias = dict[str, Callable[[], float]]
PATH = "/transactions/"
ADMIN = "/rivals/admin/ledger/transaction/"
FILTERS = {
    "everything": "",
    "oldest first": "sort=oldest",
    "largest first": "sort=largest",
    "smallest first": "sort=smallest",
    "period": "since=2025-03-01&until=2025-05-31",
    "currency": "currency=USD",
    "type": "type=transfer",
    "status": "status=failed",
    "a rare status": "status=processing",
    "direction": "direction=in",
    "four words": "currency=USD&type=transfer&status=fulfilled&direction=out",
    "amounts": "least=1000&most=2000",
    "large amounts": "least=3000000",
    "amounts, largest first": "least=1000&most=2000&sort=largest",
    "period, largest first": "since=2025-03-01&until=2025-05-31&sort=largest",
    "amounts within a period": "least=1000&most=1100&since=2025-03-01&until=2025-05-31",
    "amounts within a period, largest first": "least=1000&most=1100&since=2025-03-01&until=2025-05-31&sort=largest",
    "amounts and a currency within a year": "least=100&most=101&currency=USD&since=2025-01-01&until=2025-12-31",
    "text of few names": "text=Ada Chidinma Obi f",
    "text of hundreds of names": "text=Ada Chidinma Obi",
    "text of thousands of names": "text=Chidinma Obi",
    "text of very many names": "text=Bello",
    "text of thousands of names, largest first": "text=Chidinma Obi&sort=largest",
    "text of nobody": "text=nobody at all",
    "text of a business": "text=biz-1",
    "text of short words": "text=-a o",
    "text and status": "text=Chidinma Obi&status=failed",
    "text within a period": "text=abc&since=2025-03-01&until=2025-05-31",
    "text and amounts": "text=Chidinma Obi&least=1000&most=2000",
    "counterparty": "counterparty=Bello",
    "counterparty of few": "counterparty=Ngozi Ifeanyi Eze a",
    "an id": "transaction_id=c4ca4238-a0b9-2382-0dcc-509a6f75849b",
}
ENCODED_FILTERS = {name: quote(query, safe="=&") for name, query in FILTERS.items()}
STATEMENT_PAGES = {
    "books.month": ("the statements of this month, all currencies", "/money/statements/"),
    "books.whole": ("the statement of one currency over all its years", "/money/statements/?currency=NGN"),
    "books.breaks": ("continuity", "/money/continuity/"),
    "books.reconciled": ("reconciliation", "/reconciliation/"),
}
ADMIN_FACTOR = 50
MAX_MILLISECONDS = 100  # milliseconds, for any filter: not noticeable


def page_measures(
    large: BenchDatabase, small: BenchDatabase, rounds: int, rows: int, few: int
) -> Iterator[Measure]:
    """Every page at both sizes, the first page and one from the middle; then beside the admin and OFFSET."""
    with web_process(large) as web, web_process(small) as little:
        addresses = {
            "page 1": _addresses(None),
            "deep": _addresses(large.inside("cursors", queries=list(ENCODED_FILTERS.values()))),
        }
        found = {name: _one_measure(name, web, little, addresses, rounds) for name in ENCODED_FILTERS}
        yield from _growth_measure(found, rounds, rows, few)
        yield _rival_measures(web, rounds, rows)
        yield from _overview(web, rounds)
        yield from _statement_measures(web, rounds)


def _addresses(cursors: list[str] | None) -> dict[str, str]:
    if cursors is None:
        return {name: f"{PATH}?{query}" for name, query in ENCODED_FILTERS.items()}
    return {
        name: f"{PATH}?{query}&cursor={quote(cursor)}"
        for (name, query), cursor in zip(ENCODED_FILTERS.items(), cursors, strict=True)
    }


def _one_measure(
    name: str, web: WebProcess, little: WebProcess, addresses: dict[str, dict[str, str]], rounds: int
) -> dict[str, Sample]:
    sides: PageSides = {
        "page 1": lambda: web.get(addresses["page 1"][name]).milliseconds,
        "deep": lambda: web.get(addresses["deep"][name]).milliseconds,
        "page 1 of few": lambda: little.get(addresses["page 1"][name]).milliseconds,
    }
    for side in sides.values():
        side()
    return in_turns(rounds, sides)


def _growth_measure(
    found: dict[str, dict[str, Sample]], rounds: int, rows: int, few: int
) -> Iterator[Measure]:
    deep = {name: one["deep"].median / one["page 1"].median for name, one in found.items()}
    size = {name: one["page 1"].median / one["page 1 of few"].median for name, one in found.items()}
    yield _worst("P2.depth", "deep page beside page 1", deep, rounds)
    yield _worst("P2.size", f"page 1 of {rows:,} beside {few:,}", size, rounds)
    slowest = max(found, key=lambda name: found[name]["page 1"].median)
    one = found[slowest]["page 1"]
    yield Measure(
        "P2.slowest",
        f"slowest page 1 of all filters ({slowest})",
        one.median,
        "ms",
        MAX_MILLISECONDS,
        spread=one.spread,
        rounds=rounds,
    )


def _worst(measure: str, what: str, ratios: dict[str, float], rounds: int) -> Measure:
    name = max(ratios, key=ratios.__getitem__)
    above = [
        f"{one} {ratio:.2f}"
        for one, ratio in sorted(ratios.items(), key=lambda item: -item[1])
        if ratio > 1.3
    ]
    return Measure(
        measure,
        f"{what}, the worst of {len(ratios)} filters ({name})",
        ratios[name],
        "x",
        1.3,
        spread=(min(ratios.values()), max(ratios.values())),
        rounds=rounds,
        note=f"above 1.3: {', '.join(above)}" if above else "",
    )


def _rival_measures(web: WebProcess, rounds: int, rows: int) -> Measure:
    sides: PageSides = {
        "ours": lambda: web.get(PATH).milliseconds,
        "Django admin": lambda: web.get(ADMIN).milliseconds,
        "OFFSET": lambda: web.get(f"/rivals/offset/?at={rows // 2}").milliseconds,
    }
    for side in sides.values():
        side()
    found = in_turns(rounds, sides)
    return Measure(
        id="P2.page",
        what=f"page of {rows:,} transactions, without filters",
        value=found["ours"].median,
        unit="ms",
        rivals=medians_of(found, "Django admin", "OFFSET"),
        target={"Django admin": ADMIN_FACTOR},
        spread=found["ours"].spread,
        rounds=rounds,
        note="the admin without a second count and without queries for its filters; OFFSET to the middle",
    )


def _overview(web: WebProcess, rounds: int) -> Iterator[Measure]:
    web.get("/")
    found = Sample([web.get("/").milliseconds for _ in range(rounds)])
    yield Measure("overview.time", "the overview", found.median, "ms", 50, spread=found.spread, rounds=rounds)
    yield from page_sizes("overview", "the overview", web, "/")


def _statement_measures(web: WebProcess, rounds: int) -> Iterator[Measure]:
    for name, (what, path) in STATEMENT_PAGES.items():
        web.get(path)
        found = Sample([web.get(path).milliseconds for _ in range(rounds)])
        yield Measure(name, what, found.median, "ms", spread=found.spread, rounds=rounds)


def page_sizes(measure: str, what: str, web: WebProcess, path: str) -> Iterator[Measure]:
    """The size of a page as sent, alone and with the assets it needs."""
    answer = web.get(path)
    html = len(answer.body) / 1000
    text = gzip.decompress(answer.body).decode()
    assets = set(re.findall(r'(?:src|href)="([^"]+\.(?:css|js)[^"]*)"', text))
    critical = html + sum(len(web.get(urljoin(path, address)).body) for address in assets) / 1000
    yield Measure(f"{measure}.html", f"HTML of {what}", html, "kB gz", 14)
    yield Measure(f"{measure}.critical", f"critical bytes of {what}", critical, "kB gz", 50)


MAX_QUERIES = 6


def rendering_measures(database: BenchDatabase, rounds: int) -> Iterator[Measure]:
    """Rendering beside Jinja2. Raises BenchError if the two pages differ."""
    cookie = database.inside("session")["cookie"]
    told = database.inside("render", rounds=rounds, cookie=cookie)
    if not told["same"]:
        raise BenchError("The page in Jinja2 (tools/bench/rivals/templates) is not ours any more: mend it.")
    found = {name: Sample(told[name]) for name in ("ours", "Jinja2")}
    yield Measure(
        id="P6.render",
        what=f"rendering the list page of {told['rows']} transactions, processor time",
        value=found["ours"].median,
        unit="ms",
        rivals=medians_of(found, "Jinja2"),
        target={"Jinja2": 1 / 1.5},
        spread=found["ours"].spread,
        rounds=rounds,
    )
    yield Measure("P6.queries", "queries of the whole page", told["queries"], "", MAX_QUERIES)
    with web_process(database) as web:
        yield from page_sizes("P6", "the list page", web, PATH)
