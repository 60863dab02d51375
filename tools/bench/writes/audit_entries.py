"""P5: entries appended to the audit log by several writers at once, and verified, on PostgreSQL."""

import json
from collections.abc import Iterator

from tools.bench.databases import temporary_database
from tools.bench.measure import Measure, Sample, compared

_APPENDED = {"plain INSERT": 0.9, "table-lock chain": 3}
_VERIFIED = {"sha256 alone": 0.5}


def audit_measures(rounds: int, appended: int, verified: int) -> Iterator[Measure]:
    """Of so many appended in each round by eight writers, and a log of so many verified."""
    given = json.dumps({"rounds": rounds, "appended": appended, "verified": verified})
    with temporary_database("audit") as database:
        output = database.stack().python(
            "-m", "tools.inside_django", "tools.bench.writes.audit_process", given
        )
    found = json.loads(output.splitlines()[-1])
    for name, what, target in (
        ("append", "entries appended to the audit log by 8 writers, a commit each", _APPENDED),
        ("verify", f"entries of the audit log verified, of {verified:,}", _VERIFIED),
    ):
        sides = {side: Sample(values) for side, values in found[name].items()}
        yield compared(f"P5.{name}", what, sides, "/s", target, limit_is="least")
