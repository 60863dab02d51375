"""The time to render our list page of fifty rows, beside the same page in Jinja2."""

import re
import time
from typing import Any, cast

from django.contrib.messages.storage.fallback import FallbackStorage
from django.db import connection
from django.forms.renderers import Jinja2
from django.template import engines
from django.template.loader import get_template
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve
from django_htmx.middleware import HtmxDetails

from backoffice.accounts.models import User
from backoffice.core.web.middleware import environment
from backoffice.ledger.forms import JumpToDayForm, TransactionListForm
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.transactions.listing import transaction_page
from backoffice.operations.pages.context_processors import sending_pause, waiting_count
from backoffice.operations.pages.transactions import TransactionRow
from tools.bench.measure import in_turns

PATH = "/transactions/"
AT_ONCE = 20
"""Pages rendered for one value: a single one takes less than the resolution of the clock."""


class BothPages:
    """Both pages of the same rows, ready to render."""

    def __init__(self, user: User) -> None:
        self.request = cast(Any, RequestFactory().get(PATH))
        self.request.user = user
        self.request.resolver_match = resolve(PATH)
        self.request.htmx = HtmxDetails(self.request)
        self.request.session = {}
        self.request._messages = FallbackStorage(self.request)
        form = TransactionListForm(self.request.GET)
        form.is_valid()
        self.page = transaction_page(form.chosen(), order=form.order, cursor=None)
        self.rows = [TransactionRow(row, None) for row in self.page.rows]
        self.mirror = mirror_state()
        self.ours_template = get_template("operations/transactions.html")
        self.rival_template = engines["jinja2"].get_template("transactions.html")
        self.rival_renderer = Jinja2()
        self.places = menu_items(self.ours())

    def ours(self) -> str:
        """The page as users get it."""
        return str(
            self.ours_template.render(self._context(TransactionListForm(self.request.GET)), self.request)
        )

    def rival(self) -> str:
        """The same in Jinja2, including its form, with the values of our context processors."""
        form = TransactionListForm(self.request.GET, renderer=self.rival_renderer)
        context = {
            **self._context(form),
            **environment(self.request),
            **waiting_count(self.request),
            **sending_pause(self.request),
            "user": self.request.user,
            "perms": _Permissions(self.request.user),
            "places": self.places,
            "query": self._query,
        }
        return str(self.rival_template.render(context, self.request))

    def _context(self, form: TransactionListForm) -> dict[str, Any]:
        form.is_valid()
        jump = JumpToDayForm(self.request.GET, renderer=form.renderer)
        return {"form": form, "jump": jump, "page": self.page, "rows": self.rows, "mirror": self.mirror}

    def _query(self, **changes: Any) -> str:
        """Like the tag `querystring`."""
        query = self.request.GET.copy()
        for name, value in changes.items():
            if value is None:
                query.pop(name, None)
            else:
                query[name] = str(value)
        return f"?{query.urlencode()}" if query else ""


class _Permissions:
    """`perms.app.codename`, as used by templates."""

    def __init__(self, user: User, app: str = "") -> None:
        self._user, self._app = user, app

    def __getattr__(self, name: str) -> Any:
        return self._user.has_perm(f"{self._app}.{name}") if self._app else _Permissions(self._user, name)


def menu_items(html: str) -> list[tuple[str, ...]]:
    """The menu of our page, for the alternative's template, which then needs neither permissions nor URLs."""
    [menu] = re.findall(r'<nav class="side" aria-label="Main">(.*?)</nav>', html, re.DOTALL)
    return re.findall(r'<h2>(.*?)</h2>|<a href="(.*?)"(.*?)>(.*?)</a>', menu, re.DOTALL)


def is_same_page(one: str, other: str) -> bool:
    """Whether both are equal except for white space between tags and the CSRF token, which is masked anew
    each time.
    """
    return normalized_html(one) == normalized_html(other)


def normalized_html(html: str) -> str:
    """What `is_same_page` compares."""
    html = re.sub(r'(name="csrfmiddlewaretoken" value=")[^"]*', r"\1", html)
    return re.sub(r"\s+", " ", re.sub(r"\s*(<[^>]*>)\s*", r"\1", html)).strip()


def measure_rendering(rounds: int, cookie: str) -> dict[str, Any]:
    """Milliseconds of both in each round, whether both pages are equal, and the queries of ours."""
    user = User.objects.get(email="bench@countersign.example")
    sides = BothPages(user)
    is_same = is_same_page(sides.ours(), sides.rival())
    found = in_turns(rounds, {"ours": lambda: _timed(sides.ours), "Jinja2": lambda: _timed(sides.rival)})
    return {
        "same": is_same,
        "rows": len(sides.rows),
        "queries": _queries(cookie),
        **{name: one.values for name, one in found.items()},
    }


def _queries(cookie: str) -> int:
    """The number of queries of the whole page in a warm process."""
    client = Client(headers={"host": "127.0.0.1", "cookie": cookie})
    client.get(PATH)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(PATH)
    if answer.status_code != 200:
        raise ValueError(f"{PATH} answered {answer.status_code}")
    return len(queries)


def _timed(render: Any) -> float:
    """Milliseconds of CPU time, since rendering waits for nothing."""
    began = time.process_time()
    for _ in range(AT_ONCE):
        render()
    return (time.process_time() - began) * 1000 / AT_ONCE
