"""How many pages one process makes at the same time. Further requests wait until one of them is ready.

A process has more threads than that, because some wait for the provider or for the reader of a large file. But all
share one processor: the more pages it makes at once, the longer each takes, and the longer each holds the locks of an
operation, for which others wait. docs/benchmarks.md has what eight people at once notice of it (P10).
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

PAGES_AT_ONCE = 4
_is_counted: ContextVar[bool] = ContextVar("counted as a page", default=False)


class PageLimit:
    """Counts the pages that are being made. While there are `limit` of them, further requests wait in their order."""

    def __init__(self, limit: int) -> None:
        self._limit, self._count = limit, 0
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def page(self) -> Iterator[None]:
        """Count as a page within the block; waits before it for as long as there are too many."""
        may_begin = threading.Event()
        with self._lock:
            self._waiting.append(may_begin)
            self._let_next_begin()
        may_begin.wait()
        token = _is_counted.set(True)
        try:
            yield
        finally:
            _is_counted.reset(token)
            self._end_one()

    @contextmanager
    def not_counted(self) -> Iterator[None]:
        """Let another page be made within the block. No effect outside of a page, such as in a background job.

        Does not wait at the end of the block, since the caller may have a lock for which the other pages wait.
        """
        if not _is_counted.get():
            yield
            return
        self._end_one()
        try:
            yield
        finally:
            with self._lock:
                self._count += 1

    def _end_one(self) -> None:
        with self._lock:
            self._count -= 1
            self._let_next_begin()

    def _let_next_begin(self) -> None:
        while self._waiting and self._count < self._limit:
            self._count += 1
            self._waiting.popleft().set()


_limit = PageLimit(PAGES_AT_ONCE)


def waiting_for_provider() -> AbstractContextManager[None]:
    """Let another page be made within the block, in which the provider is asked."""
    return _limit.not_counted()


class PageLimitMiddleware:
    """Limits the pages that are made at once. A file is not counted while it is read, only until it begins."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with _limit.page():
            return self.get_response(request)
