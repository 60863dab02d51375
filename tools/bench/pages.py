"""Benchmarks of one web process: exports (P1), the list of transactions for every filter and at any depth (P2), its
size, queries and rendering (P6), and the overview.
"""

import gzip
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import TypeAlias
from urllib.parse import quote, urljoin

from tools.bench.databases import BenchDatabase, WebProcess, web_process
from tools.bench.measure import OURS, Measure, Sample, alternate, compared, sampled
from tools.processes import StackError

Sides: TypeAlias = dict[str, Callable[[], float]]
SMALL_EXPORT = 10_000
RIVALS = {
    "model iterator": ("model.csv", 4),
    "values_list": ("values.csv", 4),
    "django-import-export": ("import-export.csv", 40),
}
"""URL, and how many times fewer rows each writes: the rate is constant, and a million would take minutes."""
MAX_EXTRA_GROWTH = 4.0  # MiB
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
    "amounts": "min_amount=1000&max_amount=2000",
    "large amounts": "min_amount=3000000",
    "amounts, largest first": "min_amount=1000&max_amount=2000&sort=largest",
    "period, largest first": "since=2025-03-01&until=2025-05-31&sort=largest",
    "amounts within a period": "min_amount=1000&max_amount=1100&since=2025-03-01&until=2025-05-31",
    "amounts within a period, largest first": (
        "min_amount=1000&max_amount=1100&since=2025-03-01&until=2025-05-31&sort=largest"
    ),
    "amounts and a currency within a year": (
        "min_amount=100&max_amount=101&currency=USD&since=2025-01-01&until=2025-12-31"
    ),
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
    "text and amounts": "text=Chidinma Obi&min_amount=1000&max_amount=2000",
    "counterparty": "counterparty=Bello",
    "counterparty of few": "counterparty=Ngozi Ifeanyi Eze a",
    "an id": "transaction_id=c4ca4238-a0b9-2382-0dcc-509a6f75849b",
}
ENCODED_FILTERS = {name: quote(query, safe="=&") for name, query in FILTERS.items()}
TIMED_PAGES = {
    "books.month": ("the statements of this month, all currencies", "/money/statements/"),
    "books.whole": ("the statement of one currency over all its years", "/money/statements/?currency=NGN"),
    "books.breaks": ("continuity", "/reconciliation/continuity/"),
    "books.reconciled": ("reconciliation", "/reconciliation/"),
}
ADMIN_FACTOR = 25
MAX_MILLISECONDS = 60  # for any filter: not noticeable
MAX_RATIO, MAX_RATIO_OF_TEXT = 1.3, 2.0
MAX_QUERIES = 6
STILL_OPEN = 200  # operations


def page_measures(
    large: BenchDatabase, small: BenchDatabase, rounds: int, rows: int, small_rows: int
) -> Iterator[Measure]:
    """Every page at both sizes, the first page and one from the middle; then beside the admin and OFFSET."""
    cursors = large.inside("cursors", queries=list(ENCODED_FILTERS.values()))
    with web_process(large) as web, web_process(small) as small_web:
        found = {
            name: _one_measure(web, small_web, f"{PATH}?{query}", cursor, rounds)
            for (name, query), cursor in zip(ENCODED_FILTERS.items(), cursors, strict=True)
        }
        yield from _growth_measures(found, rows, small_rows)
        yield _rival_measure(web, rounds, rows)
        for name, (what, path) in TIMED_PAGES.items():
            yield _timed_page(web, name, what, path, rounds, None)


def overview_measures(database: BenchDatabase, rounds: int, operations: int) -> Iterator[Measure]:
    """The overview and the list of operations, with this many operations, written now unless some were before."""
    database.inside("add_operations", rows=operations, still_open=min(STILL_OPEN, operations))
    what = f"{{page}} with {operations:,} operations, {STILL_OPEN} of them open"
    with web_process(database) as web:
        overview = what.format(page="the overview")
        yield _timed_page(web, "overview.time", overview, "/", rounds, 50)
        yield from page_sizes("overview", "the overview", web, "/")
        listed = what.format(page="the list of operations")
        yield _timed_page(web, "overview.list", listed, "/operations/?tab=all", rounds, None)


def _one_measure(
    web: WebProcess, small_web: WebProcess, address: str, cursor: str, rounds: int
) -> dict[str, Sample]:
    return _warm_in_turns(
        rounds,
        {
            "page 1": lambda: web.get(address).milliseconds,
            "deep": lambda: web.get(f"{address}&cursor={quote(cursor)}").milliseconds,
            "page 1 of few": lambda: small_web.get(address).milliseconds,
        },
    )


def _warm_in_turns(rounds: int, sides: Sides) -> dict[str, Sample]:
    for side in sides.values():
        side()
    return alternate(rounds, sides)


def _growth_measures(found: dict[str, dict[str, Sample]], rows: int, small_rows: int) -> Iterator[Measure]:
    deep = {name: one["deep"].median / one["page 1"].median for name, one in found.items()}
    size = {name: one["page 1"].median / one["page 1 of few"].median for name, one in found.items()}
    by_text = {name for name, query in FILTERS.items() if "text=" in query or "counterparty=" in query}
    what = f"page 1 of {rows:,} beside {small_rows:,}"
    yield _worst("P2.depth", "deep page beside page 1", deep, MAX_RATIO)
    yield _worst("P2.size", what, {name: size[name] for name in size if name not in by_text}, MAX_RATIO)
    yield _worst(
        "P2.text",
        f"{what}, by text",
        {name: size[name] for name in size if name in by_text},
        MAX_RATIO_OF_TEXT,
    )
    slowest = max(found, key=lambda name: found[name]["page 1"].median)
    what = f"slowest page 1 of all filters ({slowest})"
    yield sampled("P2.slowest", what, found[slowest]["page 1"], "ms", MAX_MILLISECONDS)


def _worst(measure: str, what: str, ratios: dict[str, float], limit: float) -> Measure:
    ranked = sorted(ratios.items(), key=lambda item: -item[1])
    name, worst = ranked[0]
    above = ", ".join(f"{one} {ratio:.2f}" for one, ratio in ranked if ratio > limit)
    what = f"{what}, the worst of {len(ratios)} filters ({name})"
    note = f"above {limit}: {above}" if above else ""
    return Measure(measure, what, worst, "x", limit, spread=(ranked[-1][1], worst), note=note)


def _rival_measure(web: WebProcess, rounds: int, rows: int) -> Measure:
    found = _warm_in_turns(
        rounds,
        {
            OURS: lambda: web.get(PATH).milliseconds,
            "Django admin": lambda: web.get(ADMIN).milliseconds,
            "OFFSET": lambda: web.get(f"/rivals/offset/?at={rows // 2}").milliseconds,
        },
    )
    what = f"page of {rows:,} transactions, without filters"
    note = "the admin without a second count and without queries for its filters; OFFSET to the middle"
    return compared("P2.page", what, found, "ms", {"Django admin": ADMIN_FACTOR}, note=note)


def _timed_page(
    web: WebProcess, measure: str, what: str, path: str, rounds: int, limit: float | None
) -> Measure:
    found = _warm_in_turns(rounds, {OURS: lambda: web.get(path).milliseconds})
    return sampled(measure, what, found[OURS], "ms", limit)


def page_sizes(measure: str, what: str, web: WebProcess, path: str) -> Iterator[Measure]:
    """The size of a page as sent, alone and with the assets it needs."""
    answer = web.get(path)
    html = len(answer.body) / 1000
    text = gzip.decompress(answer.body).decode()
    assets = set(re.findall(r'(?:src|href)="([^"]+\.(?:css|js)[^"]*)"', text))
    critical = html + sum(len(web.get(urljoin(path, address)).body) for address in assets) / 1000
    yield Measure(f"{measure}.html", f"HTML of {what}", html, "kB gz", 14)
    yield Measure(f"{measure}.critical", f"critical bytes of {what}", critical, "kB gz", 50)


def rendering_measures(database: BenchDatabase, rounds: int) -> Iterator[Measure]:
    """Rendering beside Jinja2. Raises StackError if the two pages differ."""
    cookie = database.inside("session")["cookie"]
    rendered = database.inside("render", rounds=rounds, cookie=cookie)
    if not rendered["same"]:
        raise StackError("The page in Jinja2 (tools/bench/templates) is not ours any more: mend it.")
    found = {name: Sample(rendered[name]) for name in (OURS, "Jinja2")}
    what = f"rendering the list page of {rendered['rows']} transactions, processor time"
    yield compared("P6.render", what, found, "ms", {"Jinja2": 1 / 1.3})
    yield Measure("P6.queries", "queries of the whole page", rendered["queries"], "", MAX_QUERIES)
    with web_process(database) as web:
        yield from page_sizes("P6", "the list page", web, PATH)


def export_measures(database: BenchDatabase, rounds: int, rows: int) -> Iterator[Measure]:
    """Ours on PostgreSQL beside COPY and common alternatives."""
    newest, newest_few = database.inside("newest", rows=rows), database.inside("newest", rows=SMALL_EXPORT)
    statement = database.inside("copy_statement", since=newest["since"])["statement"]
    with web_process(database) as web:
        _warm_up(web, newest_few["since"])
        first_bytes: list[float] = []

        def ours() -> float:
            download = web.download(_export_path(newest["since"]))
            first_bytes.append(download.first_byte * 1000)
            return float(newest["rows"] / download.whole)

        sides = {OURS: ours, "COPY": lambda: newest["rows"] / _copy(database, statement)}
        sides |= {name: _rival(web, path, rows // divisor) for name, (path, divisor) in RIVALS.items()}
        for side in (ours, sides["COPY"]):
            side()  # load the rows into memory, for both sides
        found = alternate(rounds, sides)
    growths = alternate(
        rounds,
        {
            "big": lambda: _growth(database, newest_few["since"], newest["since"]),
            "small": lambda: _growth(database, newest_few["since"], newest_few["since"]),
        },
    )
    big, small = growths["big"], growths["small"].median
    what = f"CSV of {newest['rows']:,} transactions over HTTP, formula-safe"
    target = {"COPY": 0.95, "model iterator": 6, "django-import-export": 12}
    note = "COPY is psql with the same SELECT; the others write fewer rows, and the table gives their rate"
    yield compared("P1.rate", what, found, "rows/s", target, limit_is="least", note=note)
    yield sampled("P1.first-byte", "its first byte", Sample(first_bytes[-rounds:]), "ms", 100)
    yield sampled("P1.memory", "growth of the web process meanwhile", big, "MiB", 4)
    what = f"more of it than for {newest_few['rows']:,} rows ({small:.1f} MiB)"
    yield Measure("P1.memory-even", what, max(0.0, big.median - small), "MiB", MAX_EXTRA_GROWTH)


def sqlite_export_measures(database: BenchDatabase, rounds: int, rows: int) -> Iterator[Measure]:
    """Ours on SQLite beside common alternatives."""
    newest = database.inside("newest", rows=rows)
    with web_process(database) as web:
        _warm_up(web, newest["since"])
        sides = {OURS: lambda: newest["rows"] / web.download(_export_path(newest["since"])).whole}
        sides |= {name: _rival(web, RIVALS[name][0], rows) for name in ("model iterator", "values_list")}
        found = alternate(rounds, sides)
    what = f"CSV of {newest['rows']:,} transactions over HTTP, on SQLite"
    yield compared("P1.sqlite", what, found, "rows/s", {"model iterator": 2.5}, limit_is="least")


def _export_path(since: str) -> str:
    return f"/reports/transactions.csv?since={since}"


def _warm_up(web: WebProcess, since: str) -> None:
    for path in (_export_path(since), *(f"/rivals/{path}?rows=100" for path, _ in RIVALS.values())):
        web.download(path)


def _rival(web: WebProcess, path: str, rows: int) -> Callable[[], float]:
    return lambda: rows / web.download(f"/rivals/{path}?rows={rows}").whole


def _growth(database: BenchDatabase, warm_up_since: str, since: str) -> float:
    """MiB that this file adds to a new process that has already written a small one, since freed memory would
    hide it.
    """
    with web_process(database) as web:
        web.download(_export_path(warm_up_since))
        with web.growth() as growth:
            web.download(_export_path(since))
    return growth[0]


def _copy(database: BenchDatabase, statement: str) -> float:
    began = time.perf_counter()
    subprocess.run(  # noqa: S603 - our own statement
        ["psql", database.url, "--quiet", "--no-psqlrc", "--command", statement],  # noqa: S607 - wherever it is
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began
