"""One measure with its limit and its alternatives, and how both sides are measured in alternation."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Sample:
    """The values of several rounds of one side."""

    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.values), max(self.values)


@dataclass(frozen=True)
class Measure:
    """One line of the table.

    The limit is the maximum or minimum of the value. `rivals` are values of the same unit. A ratio says how
    many times better than the alternative we are, whether more of the unit is better (`limit_is` "least") or
    less; `target` is its minimum.
    """

    id: str
    what: str
    value: float
    unit: str
    limit: float | None = None
    limit_is: Literal["most", "least"] = "most"
    rivals: Mapping[str, float] = field(default_factory=dict)
    target: Mapping[str, float] = field(default_factory=dict)
    spread: tuple[float, float] | None = None
    rounds: int = 1
    note: str = ""

    @property
    def ratios(self) -> dict[str, float]:
        """How many times better than each alternative."""
        if self.limit_is == "least":
            return {name: self.value / value for name, value in self.rivals.items()}
        return {name: value / self.value for name, value in self.rivals.items()}

    @property
    def is_met(self) -> bool:
        """Whether the value is within the limit and every ratio reaches its target."""
        within = self.limit is None or (
            self.value <= self.limit if self.limit_is == "most" else self.value >= self.limit
        )
        return within and all(self.ratios[name] >= least for name, least in self.target.items())

    @property
    def told(self) -> dict[str, object]:
        """The measure as written to bench.json."""
        return {
            "id": self.id,
            "what": self.what,
            "value": self.value,
            "unit": self.unit,
            "limit": self.limit,
            "limit_is": self.limit_is,
            "rivals": dict(self.rivals),
            "ratios": self.ratios,
            "target": dict(self.target),
            "met": self.is_met,
            "spread": self.spread,
            "rounds": self.rounds,
            "note": self.note,
        }

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"at {self.limit_is} {_short(self.limit)}"
        spread = "" if self.spread is None else f"{_short(self.spread[0])} to {_short(self.spread[1])}"
        against = "; ".join(
            f"{ratio:.2f} x {name} ({_short(self.rivals[name])})"
            + (f", wanted {self.target[name]:.2f} x" if name in self.target else "")
            for name, ratio in self.ratios.items()
        )
        verdict = "met" if self.is_met else "MISSED"
        return (
            f"{self.id:<18} {self.what:<78} {_short(self.value):>9} {self.unit:<7} {spread:>20}  {limit:<16} "
            f"{verdict:<7} {against}"
        ).rstrip() + (f"\n{'':<18} {self.note}" if self.note else "")


def in_turns(rounds: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, Sample]:
    """Measure every side once in each round, starting with another side each time."""
    names = list(sides)
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            found[name].append(sides[name]())
    return {name: Sample(values) for name, values in found.items()}


def medians_of(found: Mapping[str, Sample], *rivals: str) -> dict[str, float]:
    """The medians of these sides, for `rivals`."""
    return {name: found[name].median for name in rivals}


def write(measures: Iterable[Measure], path: Path) -> None:
    """Store the measures as JSON."""
    path.write_text(json.dumps([measure.told for measure in measures], indent=2) + "\n")


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"
