"""What queries of Django lack: many texts joined into one, on both engines, and split again; and queries that are
composed once in each thread, where the ORM takes longer to compose them than to run them.
"""

import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from django.db.models import Aggregate, CharField

Composed = TypeVar("Composed")
Parameters = ParamSpec("Parameters")


class JoinedTexts(Aggregate):
    """The texts of many rows in one, a line each, for `split_texts`; null if there are none. A text must be one line.

    Django has an aggregate for it on both engines from release 6.0 on.
    """

    function = "GROUP_CONCAT"
    template = "%(function)s(%(expressions)s, char(10))"
    output_field = CharField()

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        return self.as_sql(
            compiler, connection, function="STRING_AGG", template="%(function)s(%(expressions)s, chr(10))"
        )


def split_texts(joined: str | None) -> frozenset[str]:
    """The texts that `JoinedTexts` joined."""
    return frozenset((joined or "").split("\n")) - {""}


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
