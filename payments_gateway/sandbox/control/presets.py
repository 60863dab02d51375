"""The faults that the console offers: each is an order with at most one number left to say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from payments_gateway.sandbox.faults.garbage import FORMS
from payments_gateway.sandbox.faults.orders import Kind, Order, order_of
from payments_gateway.sandbox.wire.errors import RefusedError


@dataclass(frozen=True, slots=True)
class Preset:
    """Members of an order; `number` names the one that is typed, `usual` stands for it when nothing is."""

    label: str
    members: Mapping[str, object]
    number: str = ""
    usual: Decimal = field(default=Decimal(0))
    whole: bool = False


_BEFORE = "not executed"
_AFTER = "executed"

PRESETS: Mapping[str, Preset] = {
    "delay-before": Preset(
        "wait, then execute (seconds)", {"kind": "delay", "when": "before_execution"}, "seconds", Decimal(30)
    ),
    "delay-after": Preset(
        "execute, then wait (seconds)", {"kind": "delay", "when": "after_execution"}, "seconds", Decimal(30)
    ),
    **{
        f"status-{status}-{when}": Preset(
            f"status {status}, {said}", {"kind": "status", "status": status, "when": f"{when}_execution"}
        )
        for status in (400, 401, 403, 409, 429, 500, 502, 503, 504)
        for when, said in (("before", _BEFORE), ("after", _AFTER))
    },
    "drop-read": Preset(f"reset before the body is read, {_BEFORE}", {"kind": "drop", "when": "before_read"}),
    "drop-unexecuted": Preset(f"close without an answer, {_BEFORE}", {"kind": "drop", "when": "after_read"}),
    "drop-executed": Preset(
        f"close without an answer, {_AFTER}", {"kind": "drop", "when": "after_execution"}
    ),
    "drop-answer": Preset(f"reset in mid-answer, {_AFTER}", {"kind": "drop", "when": "mid_answer"}),
    "truncate": Preset(
        f"cut the answer (bytes), {_AFTER}", {"kind": "truncate"}, "at", Decimal(40), whole=True
    ),
    "duplicate": Preset("a record comes twice in the list", {"kind": "duplicate_record"}),
    "hide": Preset("the list lags (seconds)", {"kind": "hide_record_for"}, "seconds", Decimal(60)),
    "rate": Preset("rate limit (requests per second)", {"kind": "rate_limit"}, "per_second", Decimal(1)),
    **{
        f"garbage-{form}": Preset(
            f"garbage: {form.replace('_', ' ')}, {_AFTER}", {"kind": "garbage", "form": form}
        )
        for form in FORMS
    },
}


def choices() -> list[tuple[str, str]]:
    """Values and labels of the select."""
    return [(name, preset.label) for name, preset in PRESETS.items()]


def order(typed: Mapping[str, object]) -> Order:
    """The order of what was typed: operation, what, number, times, containing. RefusedError 400 when it cannot be."""
    preset = PRESETS[str(typed["what"])]
    members = {**preset.members, "operation": typed["operation"], **_number(preset, typed["number"])}
    for name in ("times", "containing"):
        if typed[name]:
            members[name] = typed[name]
    return order_of(Kind.model_validate(members))


def _number(preset: Preset, typed: object) -> dict[str, object]:
    if not preset.number:
        return {}
    number = typed if isinstance(typed, Decimal) else preset.usual
    if not preset.whole:
        return {preset.number: number}
    if number != int(number):
        raise RefusedError(400, "number must be whole")
    return {preset.number: int(number)}
