"""Rejections by the simulated provider: HTTP status, message, and the invalid members."""

from collections.abc import Sequence


class RefusedError(Exception):
    """The response has this status and message, and nothing was changed.

    `problems` are (member, what is wrong with it) pairs for the `errors` list of the response.
    """

    def __init__(self, status: int, message: str, problems: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.problems = tuple(problems)


class BareRefusalError(RefusedError):
    """A rejection whose body has only `message` (Errors of the specification: a bank account without KYC)."""


def refused_member(member: str, phrase: str, status: int = 400) -> RefusedError:
    """A rejection that names this member in its message and in its list of errors."""
    return RefusedError(status, f"{member} {phrase}", [(member, phrase)])
