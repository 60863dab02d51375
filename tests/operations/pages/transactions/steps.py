"""The page of transactions and its content."""

import re
from typing import Any

PAGE = "/transactions/"
MINUS = "\N{MINUS SIGN}"


def listed(answer: Any) -> list[str]:
    return [row.transaction.transaction_id for row in answer.context["rows"]]


def totals(html: str) -> list[list[str]]:
    """The texts of the cells of the table of totals."""
    body = html.partition('<table class="totals">')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = body.split("</tr>")[:-1]
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in rows]
