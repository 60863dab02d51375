"""The results of the bench that the documentation shows, and the tables made from them.

`python -m tools.bench --keep` replaces those that it measured; `python -m tools.docs` writes the tables.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from tools.processes import ROOT

RESULTS = ROOT / "tools" / "bench" / "results.json"
SECONDS_PER_PAGE = 10
"""How often a person at work opens a page, for the number of people that one core serves."""
_ELSEWHERE = ("storage.", "partitions.")  # in docs/scaling.md
Result: TypeAlias = Mapping[str, Any]


def kept() -> list[dict[str, Any]]:
    """The stored results, in the order of their table."""
    rows: list[dict[str, Any]] = json.loads(RESULTS.read_text())
    return rows


def keep(measured: Iterable[Result], day: str) -> None:
    """Replace the stored results of the same names, with the day of the run; new ones follow the others."""
    rows = {row["id"]: row for row in kept()}
    rows |= {row["id"]: {**row, "day": day} for row in measured}
    RESULTS.write_text(json.dumps(list(rows.values()), indent=1, ensure_ascii=False) + "\n")


def short(value: float) -> str:
    """The value without decimals from 1,000, with one from 10, and with two below."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


def benchmarks_table() -> str:
    """One line for each measure except those of docs/scaling.md."""
    lines = [
        "",
        "| Line | What | Ours | Wanted | Times as good as | Measured |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_benchmark_line(row) for row in kept() if not row["id"].startswith(_ELSEWHERE)]
    return "\n".join([*lines, "", ""])


def _benchmark_line(row: Result) -> str:
    spread = f" ({short(row['spread'][0])} to {short(row['spread'][1])})" if row["spread"] else ""
    limit = "" if row["limit"] is None else f"at {row['limit_is']} {short(row['limit'])}"
    ratios = "; ".join(
        f"{name} {ratio:.2f}" + (f", wanted {row['target'][name]:.3g}" if name in row["target"] else "")
        for name, ratio in row["ratios"].items()
    )
    name = row["id"] if row["met"] else f"{row['id']} **missed**"
    value = f"{short(row['value'])} {row['unit']}".strip()
    return f"| {name} | {row['what']} | {value}{spread} | {limit} | {ratios} | {row['day']} |"


def storage_table() -> str:
    """Bytes of a row with its indexes, and gigabytes of a million of them."""
    rows = {row["id"]: row for row in kept()}
    names = [name.removesuffix(".table") for name in rows if name.endswith(".table")]
    lines = [
        "",
        "| One | Table | Indexes | Together | A million | Largest tables |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        table, indexes = rows[f"{name}.table"], rows[f"{name}.indexes"]["value"]
        whole = table["value"] + indexes
        lines.append(
            f"| {table['what']} | {table['value']:,.0f} | {indexes:,.0f} | {whole:,.0f} bytes "
            f"| {whole / 1000:,.1f} GB | {table['note']} |"
        )
    return "\n".join([*lines, "", ""])


def partitions_table() -> str:
    """Each query on partitions and on one table."""
    lines = [
        "",
        "| Query | Partitions read | With partitions | One table |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['what']} | {row['note']} | {short(row['value'])} {row['unit']} "
        f"| {short(row['rivals']['one table'])} {row['unit']} |"
        for row in kept()
        if row["id"].startswith("partitions.")
    ]
    return "\n".join([*lines, "", ""])


def capacity_table() -> str:
    """What one machine carries, computed from the measured rates."""
    rows = {row["id"]: row for row in kept()}
    payments, slow = rows["P9.fast"]["value"], rows["P9.slow"]["value"]
    merged, pages = rows["P4.PostgreSQL.new"]["value"], rows["P10.rate"]["value"]
    figures = [
        ("withdrawals of one balance, an hour", payments * 60, "P9.fast"),
        ("the same, the provider taking 300 ms for each answer", 500 / slow * 3600, "P9.slow"),
        ("new transactions mirrored, an hour, if the provider lists them as fast", merged * 3600, "P4"),
        ("webhook deliveries stored, a second, by one web worker", rows["P3.rate"]["value"], "P3.rate"),
        (
            f"people at once on one core, a page every {SECONDS_PER_PAGE} s",
            pages * SECONDS_PER_PAGE,
            "P10.rate",
        ),
    ]
    lines = ["", "| What | Up to | From |", "|---|---|---|"]
    lines += [f"| {what} | {float(f'{figure:.2g}'):,.0f} | {source} |" for what, figure, source in figures]
    return "\n".join([*lines, "", ""])
