"""Text search in names on PostgreSQL.

It searches the distinct combinations of names (`ledger_names`), of which there are far fewer than
transactions. They are stored in lower case, since `ILIKE` takes many times as long.
"""

import re
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

    `row_condition` is the condition on a row with `names_key`, `amount` and `id`. `extra_rows` select what the
    keys do not include, each row once: the transaction whose id is the text, and those whose amount it is.
    """

    keys: Sequence[Any] | None
    row_condition: Sql
    extra_rows: list[Sql]
    row_id: int | None  # primary key of the transaction whose id is the text


def match_names(criteria: TransactionFilter, per_row_match: NameMatch | None = None) -> NameMatch | None:
    """Find the matching combinations of names first; slow for a text that many names contain.

    None without a text.

    `per_row_match` is the result of `match_names_per_row` for the same filter, if available: its id lookup is
    reused.
    """
    if not criteria.searches_names:
        return None
    pk = per_row_match.row_id if per_row_match else _row_with_id(criteria)
    conditions = [*_index_conditions(criteria), *_conditions(criteria)]
    found = fetch_rows(select("named.key::text", _NAMES, conditions, limit=MAX_LISTED_NAMES + 1))
    if len(found) > MAX_LISTED_NAMES:
        return NameMatch(None, _any_of(_per_row(_conditions(criteria)), criteria, pk), [], pk)
    keys = [key for [key] in found]
    row_condition = _any_of(Sql("names_key = ANY(%s::uuid[])", [keys]), criteria, pk)
    if len(keys) > MAX_MERGED_NAMES:
        return NameMatch(None, row_condition, [], pk)
    return NameMatch(keys, row_condition, _extra_rows(criteria, keys, pk), pk)


def match_names_per_row(criteria: TransactionFilter) -> NameMatch | None:
    """The same condition, checked for each row by its `names_key`: fast for few rows. None without a text."""
    if not criteria.searches_names:
        return None
    pk = _row_with_id(criteria)
    return NameMatch(None, _any_of(_per_row(_conditions(criteria)), criteria, pk), [], pk)


def _index_conditions(criteria: TransactionFilter) -> list[Sql]:
    """Conditions for the trigram index, which all matching names fulfil, and others may.

    The index reads an entry for every three adjacent characters of a pattern, in which one name of ten may occur. Those
    of a word mostly occur together. So of two words or more only the last three characters of each are looked up.
    """
    patterns: list[str] = []
    for text in filter(None, (criteria.text, criteria.counterparty)):
        parts = [word[-3:] for word in re.findall(r"[^\W_]{3,}", text)]
        patterns += parts if len(parts) > 1 else [text]
    return [
        Sql("named.names LIKE lower(%s)", [_like_pattern(pattern)]) for pattern in dict.fromkeys(patterns)
    ]


def _conditions(criteria: TransactionFilter) -> list[Sql]:
    """The conditions that count, of which PostgreSQL cannot use an index."""
    text = [Sql("strpos(named.names, lower(%s)) > 0", [criteria.text])] if criteria.text else []
    return [*text, *(_counterparty_conditions(criteria) if criteria.counterparty else [])]


def _counterparty_conditions(criteria: TransactionFilter) -> list[Sql]:
    return [Sql("strpos(named.counterparty, lower(%s)) > 0", [criteria.counterparty])]


def _per_row(conditions: list[Sql]) -> Sql:
    condition = all_conditions(conditions)
    subquery = f"(SELECT {condition.text} FROM ledger_names named WHERE named.key = names_key)"  # noqa: S608 - our own texts
    return Sql(subquery, condition.values)


def _any_of(condition: Sql, criteria: TransactionFilter, pk: int | None) -> Sql:
    """The condition on names, or the transaction's id or amount is the text."""
    others = _others(criteria, pk)
    if not others:
        return condition
    texts = " OR ".join([condition.text, *(other.text for other in others)])
    return Sql(f"({texts})", [*condition.values, *(value for other in others for value in other.values)])


def _extra_rows(criteria: TransactionFilter, keys: Sequence[Any], pk: int | None) -> list[Sql]:
    without_names = Sql("names_key <> ALL(%s::uuid[])", [keys])
    without_id = Sql("id <> %s", [pk])
    return [
        all_conditions([other, without_names, *([without_id] if number and pk is not None else [])])
        for number, other in enumerate(_others(criteria, pk))
    ]


def _others(criteria: TransactionFilter, pk: int | None) -> list[Sql]:
    """What else the text may be: the id of this transaction, and an amount (of the chosen counterparty)."""
    by_id = [] if pk is None else [Sql("id = %s", [pk])]
    if criteria.text_amount is None:
        return by_id
    of_counterparty = [_per_row(_counterparty_conditions(criteria))] if criteria.counterparty else []
    return [*by_id, all_conditions([Sql("amount = %s", [criteria.text_amount]), *of_counterparty])]


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
