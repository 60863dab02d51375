"""Texts in names, on PostgreSQL: looked for in the combinations of names, of which there are far fewer than rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backoffice.ledger.chosen import Chosen
from backoffice.ledger.pieces import Sql, all_of, fetch, select

MERGED, LISTED = 500, 5_000
"""So many combinations can be the keys of a merge, so many a list in which those of each row are looked for."""
_NAMES = Sql("ledger_names named")


@dataclass(frozen=True)
class Said:
    """What the texts ask. `keys` are of all the combinations of names that have them, or None if those are too many.

    `of_row` asks it of a row with its `names_key` and its `id`; `alone` leads to the transaction whose id the text is,
    if there is one that the keys do not lead to.
    """

    keys: Sequence[Any] | None
    of_row: Sql
    alone: Sql | None
    whose_id: int | None  # the row whose id at the service the text is


def said_by(chosen: Chosen, of_each: Said | None = None) -> Said | None:
    """What its texts ask, found in the names first: dear for texts of many names. None if it has none.

    Where `said_of_each` was asked before, it has looked for the id already.
    """
    if not chosen.names_somebody:
        return None
    conditions, pk = _conditions(chosen), of_each.whose_id if of_each else _whose_id(chosen)
    found = fetch(select("named.key::text", _NAMES, conditions, limit=LISTED + 1))
    if len(found) > LISTED:
        return Said(None, _or_whose_id(_of_each(conditions), pk), None, pk)
    keys = [key for [key] in found]
    listed = _or_whose_id(Sql("names_key = ANY(%s::uuid[])", [keys]), pk)
    if len(keys) > MERGED:
        return Said(None, listed, None, pk)
    alone = None if pk is None else Sql("id = %s AND names_key <> ALL(%s::uuid[])", [pk, keys])
    return Said(keys, listed, alone, pk)


def said_of_each(chosen: Chosen) -> Said | None:
    """The same, to be asked of each row's names by their key: good for the few rows at hand. None if it has none."""
    if not chosen.names_somebody:
        return None
    pk = _whose_id(chosen)
    return Said(None, _or_whose_id(_of_each(_conditions(chosen)), pk), None, pk)


def _conditions(chosen: Chosen) -> list[Sql]:
    asked = (("names", chosen.text), ("names", chosen.counterparty), ("counterparty", chosen.counterparty))
    return [Sql(f"named.{column} ILIKE %s", [_part(text)]) for column, text in asked if text]


def _of_each(conditions: list[Sql]) -> Sql:
    said = all_of(conditions)
    asked = f"(SELECT {said.text} FROM ledger_names named WHERE named.key = names_key)"  # noqa: S608 - our own texts
    return Sql(asked, said.values)


def _or_whose_id(said: Sql, pk: int | None) -> Sql:
    return said if pk is None else Sql(f"({said.text} OR id = %s)", [*said.values, pk])


def _whose_id(chosen: Chosen) -> int | None:
    """The transaction whose id the text is, if its counterparty is as asked for."""
    if not chosen.text:
        return None
    conditions = [Sql("transaction_id = %s", [chosen.text])]
    if chosen.counterparty:
        conditions.append(Sql("counterparty ILIKE %s", [_part(chosen.counterparty)]))
    found = fetch(select("id", Sql("ledger_transaction"), conditions))
    return int(found[0][0]) if found else None


def _part(text: str) -> str:
    """The pattern of everything that has this text somewhere."""
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"
