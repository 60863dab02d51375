"""Many texts of a query joined into one, on both engines, and split again."""

from typing import Any

from django.db.models import Aggregate, CharField


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
