"""Queries that are composed once in each thread, where the ORM takes longer to compose them than to run them."""

import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

Composed = TypeVar("Composed")
Parameters = ParamSpec("Parameters")


def composed_once(compose: Callable[Parameters, Composed]) -> Callable[Parameters, Composed]:
    """Keep what this function composes, for each of its positional arguments.

    The arguments are all that it may depend on, settings included, and it must not run the query: callers filter it or
    take `all()`, which copies it. In each thread, since Django changes nested queries while it writes their SQL.
    """
    kept = _Kept()

    @wraps(compose)
    def composed(*arguments: Parameters.args, **named: Parameters.kwargs) -> Composed:
        found = kept.by_arguments
        if arguments not in found:
            found[arguments] = compose(*arguments, **named)
        return cast(Composed, found[arguments])

    return composed


class _Kept(threading.local):
    def __init__(self) -> None:
        self.by_arguments: dict[tuple[Hashable, ...], object] = {}
