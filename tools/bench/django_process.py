"""Functions that run inside Django, in one process per database: `python -m tools.bench.django_process
<function> <JSON>`.

Each function takes the arguments given to `main` and returns its result as JSON.
"""

import json
import sys
from collections.abc import Callable
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import django

django.setup()

from django.contrib.auth.models import Group  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import Sum  # noqa: E402
from django.http import QueryDict  # noqa: E402

from backoffice.accounts.models import AuthenticatorDevice, User  # noqa: E402
from backoffice.accounts.roles import Role  # noqa: E402
from backoffice.accounts.sessions import SessionStore  # noqa: E402
from backoffice.core import clock  # noqa: E402
from backoffice.core.web.pagination import cursor_at  # noqa: E402
from backoffice.ledger.forms import TransactionListForm  # noqa: E402
from backoffice.ledger.models import DayTotal, Mirror, Transaction  # noqa: E402
from backoffice.ledger.transactions.filters import ORDERS  # noqa: E402
from backoffice.reports.definitions.money import TRANSACTIONS  # noqa: E402
from backoffice.reports.exports.request_codec import filter_form  # noqa: E402
from backoffice.reports.rendering.csv import copy_sql  # noqa: E402
from backoffice.reports.rendering.database import text_select  # noqa: E402
from backoffice.reports.report import ExportRequest  # noqa: E402
from tools.bench import merging, rendering  # noqa: E402

READER = "bench@countersign.example"


def session() -> dict[str, str]:
    """The cookie of a person with all read permissions, just signed in with both factors."""
    user = reader()
    found = SessionStore()
    found.update(
        {
            "_auth_user_id": str(user.pk),
            "_auth_user_backend": "backoffice.accounts.roles.StaffBackend",
            "_auth_user_hash": user.get_session_auth_hash(),
        }
    )
    found.create()
    found.confirm_second_factor(AuthenticatorDevice.objects.get(user=user))
    found.save()
    return {"cookie": f"countersign_session={found.session_key}"}


def reader() -> User:
    """A person with the roles that see the most."""
    user, is_new = User.objects.get_or_create(email=READER, defaults={"full_name": "Bench Visitor"})
    if is_new:
        user.set_unusable_password()
        user.recovery_codes_kept_at = clock.now()
        user.save()
        user.groups.set(Group.objects.filter(name__in=[Role.AUDITOR, Role.APPROVER]))
        device = AuthenticatorDevice(user=user, confirmed=True)
        device.set_new_seed()
        device.save()
    return user


def newest(rows: int) -> dict[str, Any]:
    """The first day of about the newest `rows` rows, and the exact number of rows from it on."""
    times = Transaction.objects.order_by("-occurred_at").values_list("occurred_at", flat=True)
    at = times[min(rows, Transaction.objects.count()) - 1]
    since = date.fromisoformat(at.date().isoformat())
    return {
        "since": since.isoformat(),
        "rows": Transaction.objects.filter(occurred_at__date__gte=since).count(),
    }


def statement_of_copy(since: str) -> dict[str, str]:
    """The COPY statement of our export of these rows."""
    form: Any = filter_form(TRANSACTIONS, {"since": [since]})
    form.is_valid()
    wanted = ExportRequest(TRANSACTIONS, reader(), form, ZoneInfo("UTC"), TRANSACTIONS.columns)
    select = text_select(wanted, TRANSACTIONS, connection)
    if select is None:
        raise ValueError(f"No row since {since}")
    return {"statement": copy_sql(select, connection, len(TRANSACTIONS.columns))}


def cursors(queries: list[str]) -> list[str]:
    """For each list (as a query string), a cursor into the middle of it."""
    return [_cursor_into_the_middle(query) for query in queries]


def _cursor_into_the_middle(query: str) -> str:
    form = TransactionListForm(QueryDict(query))
    if not form.is_valid():
        raise ValueError(f"{query}: {form.errors}")
    chosen, order = form.chosen(), ORDERS[form.cleaned_data["sort"]][1]
    column = order[0].lstrip("-")
    ends = Transaction.objects.order_by("occurred_at")
    if column == "occurred_at":
        since = chosen.since or ends.values_list(column, flat=True)[0]
        until = chosen.until or ends.reverse().values_list(column, flat=True)[0]
        middle: Any = since + (until - since) / 2
    else:
        least, most = chosen.least or 0, chosen.most
        middle = (least + most) / 2 if most is not None else max(60_000, least * 2)
    return cursor_at([str(middle), 0], order, among=str(chosen))


def fill(rows: int) -> dict[str, str]:
    """Merge this many records into an empty mirror, on any engine."""
    merging.fill_mirror(rows)
    return refresh()


def refresh() -> dict[str, str]:
    """Mark the mirror as synced now."""
    now, rows = clock.now(), DayTotal.objects.aggregate(rows=Sum("count"))["rows"] or 0
    stands = {"rows": rows, "listed": rows, "as_of": now, "loaded_at": now, "whole_at": now, "day_at": now}
    Mirror.objects.update_or_create(pk=1, defaults=stands)
    return {}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "session": session,
    "newest": newest,
    "copy_statement": statement_of_copy,
    "cursors": cursors,
    "fill": fill,
    "refresh": refresh,
    "merge": merging.measure_merge,
    "render": rendering.measure_rendering,
}


def main() -> int:
    """Run the function named by the first argument with the second one; the last line of the output is the
    result.
    """
    print(json.dumps(FUNCTIONS[sys.argv[1]](**json.loads(sys.argv[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
