"""Text search in names on PostgreSQL.

It searches the distinct combinations of names (`ledger_names`), of which there are far fewer than
transactions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backoffice.ledger.transactions.filters import TransactionFilter
from backoffice.ledger.transactions.sql import Sql, all_conditions, fetch_rows, select

MAX_MERGED_NAMES, MAX_LISTED_NAMES = 500, 5_000
"""Limits for matching combinations of names.

Up to the first, each is a key of a merge; up to the second, a list that each row is checked against.
"""
_NAMES = Sql("ledger_names named")


@dataclass(frozen=True)
class NameMatch:
    """A text search as SQL.

    `keys` are all matching combinations of names, or None if there are too many of them.

    `row_condition` is the condition on a row with `names_key` and `id`. `id_condition` selects the transaction
    whose id is the text, if there is one that the keys do not include.
    """

    keys: Sequence[Any] | None
    row_condition: Sql
    id_condition: Sql | None
    row_id: int | None  # primary key of the transaction whose id is the text


def match_names(criteria: TransactionFilter, per_row_match: NameMatch | None = None) -> NameMatch | None:
    """Find the matching combinations of names first; slow for a text that many names contain.

    None without a text.

    `per_row_match` is the result of `match_names_per_row` for the same filter, if available: its id lookup is
    reused.
    """
    if not criteria.searches_names:
        return None
    conditions, pk = _conditions(criteria), per_row_match.row_id if per_row_match else _row_with_id(criteria)
    found = fetch_rows(select("named.key::text", _NAMES, conditions, limit=MAX_LISTED_NAMES + 1))
    if len(found) > MAX_LISTED_NAMES:
        return NameMatch(None, _or_id(_per_row(conditions), pk), None, pk)
    keys = [key for [key] in found]
    row_condition = _or_id(Sql("names_key = ANY(%s::uuid[])", [keys]), pk)
    if len(keys) > MAX_MERGED_NAMES:
        return NameMatch(None, row_condition, None, pk)
    id_condition = None if pk is None else Sql("id = %s AND names_key <> ALL(%s::uuid[])", [pk, keys])
    return NameMatch(keys, row_condition, id_condition, pk)


def match_names_per_row(criteria: TransactionFilter) -> NameMatch | None:
    """The same condition, checked for each row by its `names_key`: fast for few rows. None without a text."""
    if not criteria.searches_names:
        return None
    pk = _row_with_id(criteria)
    return NameMatch(None, _or_id(_per_row(_conditions(criteria)), pk), None, pk)


def _conditions(criteria: TransactionFilter) -> list[Sql]:
    searches = (
        ("names", criteria.text),
        ("names", criteria.counterparty),
        ("counterparty", criteria.counterparty),
    )
    return [Sql(f"named.{column} ILIKE %s", [_like_pattern(text)]) for column, text in searches if text]


def _per_row(conditions: list[Sql]) -> Sql:
    condition = all_conditions(conditions)
    subquery = f"(SELECT {condition.text} FROM ledger_names named WHERE named.key = names_key)"  # noqa: S608 - our own texts
    return Sql(subquery, condition.values)


def _or_id(condition: Sql, pk: int | None) -> Sql:
    return condition if pk is None else Sql(f"({condition.text} OR id = %s)", [*condition.values, pk])


def _row_with_id(criteria: TransactionFilter) -> int | None:
    """The primary key of the transaction whose id is the text, if its counterparty matches too."""
    if not criteria.text:
        return None
    conditions = [Sql("transaction_id = %s", [criteria.text])]
    if criteria.counterparty:
        conditions.append(Sql("counterparty ILIKE %s", [_like_pattern(criteria.counterparty)]))
    found = fetch_rows(select("id", Sql("ledger_transaction"), conditions))
    return int(found[0][0]) if found else None


def _like_pattern(text: str) -> str:
    """The LIKE pattern for any string that contains this text."""
    for character in ("\\", "%", "_"):
        text = text.replace(character, f"\\{character}")
    return f"%{text}%"
