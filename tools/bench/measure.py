"""One measure with its limit and its alternatives, and how both sides are measured in alternation."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tools.measurements import short

OURS = "ours"


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
        is_within_limit = self.limit is None or (
            self.value <= self.limit if self.limit_is == "most" else self.value >= self.limit
        )
        return is_within_limit and all(self.ratios[name] >= minimum for name, minimum in self.target.items())

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"at {self.limit_is} {short(self.limit)}"
        spread = "" if self.spread is None else f"{short(self.spread[0])} to {short(self.spread[1])}"
        comparison = "; ".join(
            f"{ratio:.2f} x {name} ({short(self.rivals[name])})"
            + (f", wanted {self.target[name]:.2f} x" if name in self.target else "")
            for name, ratio in self.ratios.items()
        )
        verdict = "met" if self.is_met else "MISSED"
        return (
            f"{self.id:<18} {self.what:<78} {short(self.value):>9} {self.unit:<7} {spread:>20}  {limit:<16} "
            f"{verdict:<7} {comparison}"
        ).rstrip() + (f"\n{'':<18} {self.note}" if self.note else "")


def sampled(
    name: str, what: str, sample: Sample, unit: str, limit: float | None = None, **more: Any
) -> Measure:
    """The measure whose value is the median of this sample."""
    rounds = len(sample.values)
    return Measure(name, what, sample.median, unit, limit, spread=sample.spread, rounds=rounds, **more)


def compared(
    name: str, what: str, found: Mapping[str, Sample], unit: str, target: Mapping[str, float], **more: Any
) -> Measure:
    """The measure of our side beside all the other sides."""
    rivals = {side: sample.median for side, sample in found.items() if side != OURS}
    return sampled(name, what, found[OURS], unit, rivals=rivals, target=target, **more)


def alternate(rounds: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, Sample]:
    """Measure every side once in each round, starting with another side each time."""
    names = list(sides)
    found: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            found[name].append(sides[name]())
    return {name: Sample(values) for name, values in found.items()}


def as_rows(measures: Iterable[Measure]) -> list[dict[str, Any]]:
    """The measures as JSON has them."""
    return [asdict(one) | {"ratios": one.ratios, "met": one.is_met} for one in measures]


def write(measures: Iterable[Measure], path: Path) -> None:
    """Store the measures as JSON."""
    path.write_text(json.dumps(as_rows(measures), indent=2) + "\n")
