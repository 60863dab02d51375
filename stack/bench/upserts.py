"""P4: the merge of the mirror beside `bulk_create(update_conflicts)`, on both engines."""

from collections.abc import Iterator

from stack.bench.databases import Database
from stack.bench.measure import Measure, Sample

_FEWER = 5
"""The rival gets so many times fewer records: its rate is even, and as many would take it half an hour."""


def measures(database: Database, engine: str, rounds: int, records: int) -> Iterator[Measure]:
    """Records per second, told for the first time and told again unchanged."""
    found = database.inside(
        "merge", rounds=rounds, records_of_ours=records, records_of_rival=records // _FEWER
    )
    for what, key, target in (("new", "new", 3), ("unchanged", "again", 5)):
        ours, rival = Sample(found[f"ours_{key}"]), Sample(found[f"rival_{key}"])
        yield Measure(
            id=f"P4.{engine}.{what}",
            what=f"merge of {records:,} {what} records, on {engine}",
            value=ours.median,
            unit="rec/s",
            limit_is="least",
            rivals={"bulk_create": rival.median},
            target={"bulk_create": target},
            spread=ours.spread,
            rounds=rounds,
        )
