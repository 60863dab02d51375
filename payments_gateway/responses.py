"""Interpret a response: a success to read values from, or a rejection by the provider.

Removes the secrets of the call from everything that is returned, raised or logged.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from pydantic import SecretStr

from payments_gateway import errors
from payments_gateway.connection import RawResponse
from payments_gateway.money import UnreadableError, loads
from payments_gateway.profile.model import ProviderProfile

T = TypeVar("T")

HIDDEN = "[hidden]"
_LONGEST_OTP = 11  # characters; a longer secret is a key, and is in no text by chance
_LONGEST_MESSAGE = 300
_LONGEST_EXCERPT = 500
_KEY_PATTERN = re.compile(r"[\w.~+/=-]{16,}")


@dataclass(frozen=True, slots=True)
class Reply:
    """A readable answer: the members of its body, the service's clock when it was given, and its HTTP status."""

    members: dict[str, object]
    date: datetime | None
    status: int

    @property
    def data(self) -> dict[str, object]:
        """The `data` object of the envelope. Raises UnreadableError where there is none."""
        data = self.members.get("data")
        if not isinstance(data, dict):
            raise UnreadableError("it holds no data")
        return data


def value_at(value: object, *path: str) -> object:
    """Return what lies at this path of nested objects, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def first_text(value: object, paths: Iterable[tuple[str, ...]]) -> str | None:
    """Return the first non-empty text (or whole number) found at one of these paths, or None."""
    for path in paths:
        found = value_at(value, *path)
        if isinstance(found, (str, int)) and not isinstance(found, bool) and str(found).strip():
            return str(found).strip()
    return None


def first_object(value: object, paths: Iterable[tuple[str, ...]]) -> dict[str, object]:
    """Return the first object found at one of these paths. Raises UnreadableError where there is none."""
    found = next((found for path in paths if isinstance(found := value_at(value, *path), dict)), None)
    if found is None:
        raise UnreadableError("it does not hold what was asked for")
    return found


def first_list(value: object, paths: Iterable[tuple[str, ...]]) -> list[object]:
    """Return the first list found at one of these paths. Raises UnreadableError where there is none."""
    found = next((found for path in paths if isinstance(found := value_at(value, *path), list)), None)
    if found is None:
        raise UnreadableError("it does not hold the list that was asked for")
    return found


def rename_members(members: dict[str, object], places: Mapping[str, Iterable[str]]) -> dict[str, object]:
    """Return the members under our names: ours -> theirs, of which the first that is there counts. Others stay."""
    found = {
        ours: next((name for name in theirs if name in members), None) for ours, theirs in places.items()
    }
    others = {name: value for name, value in members.items() if name not in found.values()}
    return others | {ours: members[name] for ours, name in found.items() if name is not None}


def read_acknowledgement(reply: Reply) -> None:
    """Read a yes of which nothing is needed: neither its words nor its data, both of which may name a key.

    Raises UnreadableError for an object that says nothing at all, such as an empty one: whatever answered so, it was
    perhaps not the service.
    """
    if not any(reply.members.get(name) for name in ("success", "message", "data")):
        raise UnreadableError("it does not say that anything was done")


class ResponseReader:
    """Reads one answer. Knows the secrets of its call, to keep them out of all that it hands on."""

    def __init__(self, answer: RawResponse, dialect: ProviderProfile, secrets: Iterable[SecretStr]) -> None:
        self._answer = answer
        self._dialect = dialect
        self._secrets = tuple(secret for secret in secrets if secret.get_secret_value())

    @property
    def is_success(self) -> bool:
        return self._answer.status in self._dialect.success_statuses

    @property
    def is_refused(self) -> bool:
        return 400 <= self._answer.status < 500 and not self.doubt

    @property
    def doubt(self) -> str:
        """Why this status does not prove that nothing was executed, or nothing."""
        return self._dialect.uncertain_statuses.get(self._answer.status, "")

    def accept(self, into: Callable[[Reply], T]) -> T:
        """Turn a success into its typed value. Raises ValueError (UnreadableError) if it is not one."""
        if self._members.get("success", True) is not True:
            raise UnreadableError(f"it denies its own success: {self._message}")
        return into(Reply(self._members, self._answer.date, self._answer.status))

    def refusal(self) -> errors.RejectedError | None:
        """Return the service's refusal, or None when the body does not say in words that it is one."""
        try:
            denied = self._members.get("success", None if self.is_success else False)
            message = self._message
        except UnreadableError:
            return None
        if denied is not False or not message:
            return None
        return self._kind(message)(message, self._answer.status, self._excerpt)

    def failure(self, kind: type[errors.GatewayError], why: str) -> errors.GatewayError:
        """Return an error of this kind that says what came back instead of an answer."""
        status = self._answer.status
        return kind(f"The service answered HTTP {status}: {why}.", status, self._excerpt)

    @cached_property
    def _members(self) -> dict[str, object]:
        if not self._answer.is_complete:
            raise UnreadableError("it is longer than any answer should be")
        members = loads(self._answer.body)
        if not isinstance(members, dict):
            raise UnreadableError("it is not an object")
        if not self._may_echo:
            return members
        return {self._covered_text(name): self._covered(value) for name, value in members.items()}

    @property
    def _may_echo(self) -> bool:
        """Whether the body may hold a secret: as it is, or hidden behind the escapes of JSON."""
        body = self._answer.body
        return b"\\" in body or any(secret.get_secret_value().encode() in body for secret in self._secrets)

    @property
    def _message(self) -> str:
        """The words of an error: its message, then what its details add. Details alone are no message."""
        words = self._texts_in(self._dialect.message_members)
        details = self._texts_in(self._dialect.detail_members) if words else []
        details = [detail for detail in details if not any(detail in word for word in words)]
        return _one_line(self._hide("; ".join(words + details)), _LONGEST_MESSAGE)

    @property
    def _excerpt(self) -> str:
        """The beginning of the body, without secrets and fit to be stored."""
        text = self._answer.body.decode("utf-8", "replace")
        return _one_line(self._hide(text)[: 4 * _LONGEST_EXCERPT], _LONGEST_EXCERPT)

    def _texts_in(self, names: Iterable[str]) -> list[str]:
        return [text for name in names for text in _texts(self._members.get(name))]

    def _kind(self, message: str) -> type[errors.RejectedError]:
        for kind, pattern in self._dialect.refusal_patterns.items():
            if re.search(pattern, message, re.IGNORECASE):
                return errors.REJECTION_KINDS[kind]
        kind = self._dialect.refusal_statuses.get(self._answer.status, "")
        return errors.REJECTION_KINDS.get(kind, errors.RejectedError)

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret.get_secret_value(), HIDDEN)
        return text

    def _covered(self, value: object) -> object:
        """Cover what is a secret: a text, the name of a member, or a number with the digits of a token."""
        match value:
            case dict():
                return {self._covered_text(name): self._covered(item) for name, item in value.items()}
            case list():
                return [self._covered(item) for item in value]
            case str():
                return self._covered_text(value)
            case int() | Decimal() if not isinstance(value, bool) and self._is_token(value):
                return HIDDEN
        return value

    def _covered_text(self, text: str) -> str:
        """Cover a text that is a secret, and a key wherever it stands. A token may by chance occur in an id."""
        for secret in self._secrets:
            if text == secret.get_secret_value():
                return HIDDEN
            if len(secret) > _LONGEST_OTP:
                text = text.replace(secret.get_secret_value(), HIDDEN)
        return text

    def _is_token(self, number: int | Decimal) -> bool:
        """Whether the digits of a number, without a fraction of nothing but zeros, are a secret."""
        digits = f"{Decimal(number).copy_abs():f}"
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return any(digits == secret.get_secret_value() for secret in self._secrets)


class KeyResponseReader(ResponseReader):
    """Reads an answer that may hold an API key nobody knows yet.

    Of such an answer an error repeats no body, and from the service's own words it leaves out whatever is as long
    as a key.
    """

    @property
    def _excerpt(self) -> str:
        return HIDDEN

    def _hide(self, text: str) -> str:
        return _KEY_PATTERN.sub(HIDDEN, super()._hide(text))


def _texts(value: object) -> list[str]:
    """Return the texts in a message, however it is wrapped: a text, a list, or an object by field."""
    match value:
        case str():
            return [value] if value.strip() else []
        case list():
            return [text for item in value for text in _texts(item)]
        case {"field": str(field), "message": str(text)}:
            return [f"{field} {text}"]
        case dict():
            return [f"{name}: {text}" for name, item in value.items() for text in _texts(item)]
    return []


def _one_line(text: str, length: int) -> str:
    """Collapse white space, drop what cannot be printed, and cut."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= length else line[: length - 1] + "…"
