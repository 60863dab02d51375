"""P6: our list page of fifty rows beside Jinja2, its size and its queries."""

from collections.abc import Iterator

from stack.bench.databases import BenchError, Database
from stack.bench.measure import Measure, Sample, against
from stack.bench.office import office
from stack.bench.pages import PATH, sizes

QUERIES = 6


def measures(database: Database, rounds: int) -> Iterator[Measure]:
    """Raises BenchError where the rival's page is another one."""
    cookie = database.inside("session")["cookie"]
    told = database.inside("render", rounds=rounds, cookie=cookie)
    if not told["same"]:
        raise BenchError("The page in Jinja2 (stack/bench/rivals/templates) is not ours any more: mend it.")
    found = {name: Sample(told[name]) for name in ("ours", "Jinja2")}
    yield Measure(
        id="P6.render",
        what=f"rendering the list page of {told['rows']} transactions, processor time",
        value=found["ours"].median,
        unit="ms",
        rivals=against(found, "Jinja2"),
        target={"Jinja2": 1 / 1.5},
        spread=found["ours"].spread,
        rounds=rounds,
    )
    yield Measure("P6.queries", "queries of the whole page", told["queries"], "", QUERIES)
    with office(database) as web:
        yield from sizes("P6", "the list page", web, PATH)
