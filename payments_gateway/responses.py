"""Interpret a response: a success to read values from, or a rejection by the provider.

Removes the secrets of the call from everything that is returned, raised or logged.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

from pydantic import SecretStr

from payments_gateway import errors
from payments_gateway.connection import RawResponse
from payments_gateway.errors import gettext_noop as _
from payments_gateway.money import UnreadableError, loads
from payments_gateway.profile.model import ProviderProfile

T = TypeVar("T")

HIDDEN = "[hidden]"
_LONGEST_OTP = 11  # characters; a longer secret is an API key, which occurs in no text by chance
_LONGEST_MESSAGE = 300
_LONGEST_EXCERPT = 500
_KEY_PATTERN = re.compile(r"[\w.~+/=-]{16,}")


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A parsed response: the members of its body, its Date header, its HTTP status and the provider's message.

    The message is one line, without the secrets of the call; empty if the response has none.
    """

    members: dict[str, object]
    date: datetime | None
    status: int
    message: str = ""

    @property
    def data(self) -> dict[str, object]:
        """The `data` object of the envelope. Raises UnreadableError if there is none."""
        return object_in(self.members, "data")


TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
"""The types of JSON Schema in words, in the order in which a value is looked up."""


def type_name(value: object) -> str:
    return next(name for kind, name in TYPE_NAMES.items() if is_of_type(value, kind))


def is_of_type(value: object, kind: str) -> bool:
    """Whether a JSON value has this type of JSON Schema."""
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int() | Decimal():
            return kind == "number" or (kind == "integer" and value == int(value))
        case str():
            return kind == "string"
        case list():
            return kind == "array"
    return kind == "object"


MISSING = _("{member} is missing")
_ALL_MISSING = _("none of {members} is present")
NOT_AN_OBJECT = _("{member} is not an object")
NOT_A_LIST = _("{member} is not a list")
NOT_TEXT = _("{member} is not text")
NOT_AN_OBJECT_OR_LIST = _("{member} is neither an object nor a list")
ENTRY_NOT_AN_OBJECT = _("an entry of {member} is not an object")
CONTRADICTION = _("{members} contradict each other")
_NO_ENTRY = _("{member} is an object without any entry")
_NO_OBJECT_IN = _("none of {members} is an object")
_NO_LIST_IN = _("none of {members} is a list")


def wrong_type(members: Mapping[str, object], name: str, otherwise: str) -> UnreadableError:
    """The error for a member that is missing or, with the template `otherwise`, of another type than the one wanted."""
    return UnreadableError(otherwise if name in members else MISSING, member=name)


def missing(names: Sequence[str]) -> UnreadableError:
    """The error for a member that is present under none of its names."""
    return _of_one_or_all(names, MISSING, _ALL_MISSING)


def member_named(members: Mapping[str, object], names: Sequence[str]) -> str:
    """Which of these names a member has. Raises UnreadableError if none is present, or several that differ."""
    present = [name for name in names if name in members]
    if not present:
        raise missing(names)
    if any(members[name] != members[present[0]] for name in present):
        raise UnreadableError(CONTRADICTION, members=", ".join(present))
    return present[0]


def no_entries(name: str, found: object) -> UnreadableError:
    """The error for a member that is neither a list nor an object with entries."""
    return UnreadableError(_NO_ENTRY if isinstance(found, dict) else NOT_AN_OBJECT_OR_LIST, member=name)


def _of_one_or_all(names: Iterable[str], one: str, several: str) -> UnreadableError:
    distinct = list(dict.fromkeys(names))
    if len(distinct) == 1:
        return UnreadableError(one, member=distinct[0])
    return UnreadableError(several, members=", ".join(distinct))


def object_in(members: Mapping[str, object], name: str) -> dict[str, object]:
    """Return this member, an object. Raises UnreadableError, which names it."""
    found = members.get(name)
    if not isinstance(found, dict):
        raise wrong_type(members, name, NOT_AN_OBJECT)
    return found


def list_in(members: Mapping[str, object], name: str) -> list[object]:
    """Return this member, a list. Raises UnreadableError, which names it."""
    found = members.get(name)
    if not isinstance(found, list):
        raise wrong_type(members, name, NOT_A_LIST)
    return found


def value_at(value: object, *path: str) -> object:
    """Return the value at this path of nested objects, or None."""
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


def text_at(value: object, paths: Iterable[tuple[str, ...]]) -> str | None:
    """Return the text (or whole number) at the first of these paths that has a value; None if none has one.

    Raises UnreadableError, which names the member, for a value of another type.
    """
    for path in paths:
        outer = value_at(value, *path[:-1])
        if not isinstance(outer, dict | None):
            raise UnreadableError(NOT_AN_OBJECT, member=".".join(path[:-1]))
        found = value_at(value, *path)
        if found is not None:
            if not isinstance(found, (str, int)) or isinstance(found, bool):
                raise UnreadableError(NOT_TEXT, member=".".join(path))
            if str(found).strip():
                return str(found).strip()
    return None


def dotted(paths: Iterable[tuple[str, ...]]) -> list[str]:
    """The paths as people read them; the empty one is `data` itself."""
    return [".".join(path) or "data" for path in paths]


def first_object(value: object, paths: Iterable[tuple[str, ...]]) -> dict[str, object]:
    """Return the first object found at one of these paths. Raises UnreadableError if there is none."""
    found = next((found for path in paths if isinstance(found := value_at(value, *path), dict)), None)
    if found is None:
        raise _of_one_or_all(dotted(paths), NOT_AN_OBJECT, _NO_OBJECT_IN)
    return found


def first_list(value: object, paths: Iterable[tuple[str, ...]]) -> list[object]:
    """Return the first list found at one of these paths. Raises UnreadableError if there is none."""
    found = next((found for path in paths if isinstance(found := value_at(value, *path), list)), None)
    if found is None:
        raise _of_one_or_all(dotted(paths), NOT_A_LIST, _NO_LIST_IN)
    return found


def transfer_detail(response: ParsedResponse) -> dict[str, object]:
    """Return the detail of a conversion or transfer: `transferDetail` in the data, or the data itself."""
    return first_object(response.data, [("transferDetail",), ()])


def rename_members(members: dict[str, object], places: Mapping[str, Iterable[str]]) -> dict[str, object]:
    """Rename members: local name -> the provider's possible names, the first one present wins. Keeps others."""
    found = {
        local_name: next((name for name in provider_names if name in members), None)
        for local_name, provider_names in places.items()
    }
    others = {name: value for name, value in members.items() if name not in found.values()}
    return others | {local_name: members[name] for local_name, name in found.items() if name is not None}


def read_acknowledgement(response: ParsedResponse) -> str:
    """Accept a success of which no value is needed, and return its message.

    The data is not returned: it may contain an API key. Raises UnreadableError for an object without message, data
    or `success` (an empty one, say): it may not come from the provider.
    """
    if not any(response.members.get(name) for name in ("success", "message", "data")):
        raise UnreadableError(_("it does not confirm the request"))
    return response.message


UNPROVEN = _("The provider responded with HTTP {status}: {why}.")


class ResponseReader:
    """Reads one response. Removes the secrets of its call from every value and message it returns."""

    def __init__(self, response: RawResponse, profile: ProviderProfile, secrets: Iterable[SecretStr]) -> None:
        self._response = response
        self._profile = profile
        self._secrets = tuple(secret for secret in secrets if secret.get_secret_value())

    @property
    def is_success(self) -> bool:
        return self._response.status in self._profile.success_statuses

    @property
    def is_rejected(self) -> bool:
        return 400 <= self._response.status < 500 and not self.unproven_reason

    @property
    def unproven_reason(self) -> str:
        """Why this status does not prove that nothing was executed; empty if it does."""
        return self._profile.uncertain_statuses.get(self._response.status, "")

    def accept(self, into: Callable[[ParsedResponse], T]) -> T:
        """Parse a success into its typed value. Raises ValueError (UnreadableError) if it is not one."""
        if self._members.get("success", True) is not True:
            raise UnreadableError(_("it reports a failure"))
        response = self._response
        return into(ParsedResponse(self._members, response.date, response.status, self._message))

    def rejection(self) -> errors.RejectedError | None:
        """Return the provider's rejection as an error, or None if the body is not a readable rejection."""
        try:
            success = self._members.get("success", None if self.is_success else False)
        except UnreadableError:
            return None
        if success is not False or not (message := self._message):
            return None
        return self._kind(message)(message, self._response.status, self._excerpt)

    def is_repeat(self, rejection: errors.RejectedError) -> bool:
        """Whether it says that the request, its reference or its one-time code arrived before."""
        if isinstance(rejection, errors.OtpRejectedError) and not self._profile.otp_single_use:
            return False
        return re.search(self._profile.repeat_pattern, rejection.message, re.IGNORECASE) is not None

    def failure(
        self, kind: type[errors.GatewayError], template: str, **parameters: object
    ) -> errors.GatewayError:
        """Return an error of this type and template, with the HTTP status and an excerpt of the body.

        If the status itself proves nothing, the error gives the reason in the profile instead.
        """
        status = self._response.status
        if self.unproven_reason:
            template, parameters = UNPROVEN, {"why": self.unproven_reason}
        return kind.of(template, status, self._excerpt, **parameters)

    @cached_property
    def _members(self) -> dict[str, object]:
        if not self._response.is_complete:
            raise UnreadableError(_("it is too long"))
        members = loads(self._response.body)
        if not isinstance(members, dict):
            raise UnreadableError(_("it is not an object"))
        body = self._response.body  # may hold a secret literally, or written with JSON escapes
        if b"\\" in body or any(secret.get_secret_value().encode() in body for secret in self._secrets):
            return {self._hide_in_text(name): self._hide_in_value(value) for name, value in members.items()}
        return members

    @property
    def _message(self) -> str:
        """The provider's message followed by its details. Details without a message are not a message."""
        texts = self._texts_in(self._profile.message_members)
        details = self._texts_in(self._profile.detail_members) if texts else []
        details = [detail for detail in details if not any(detail in word for word in texts)]
        return _one_line(self._hide("; ".join(texts + details)), _LONGEST_MESSAGE)

    @property
    def _excerpt(self) -> str:
        """The beginning of the body, without secrets and safe to store."""
        text = self._response.body.decode("utf-8", "replace")
        return _one_line(self._hide(text)[: 4 * _LONGEST_EXCERPT], _LONGEST_EXCERPT)

    def _texts_in(self, names: Iterable[str]) -> list[str]:
        return [text for name in names for text in _texts(self._members.get(name))]

    def _kind(self, message: str) -> type[errors.RejectedError]:
        for kind, pattern in self._profile.rejection_patterns.items():
            if re.search(pattern, message, re.IGNORECASE):
                return errors.REJECTION_KINDS[kind]
        kind = self._profile.rejection_statuses.get(self._response.status, "")
        return errors.REJECTION_KINDS.get(kind, errors.RejectedError)

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret.get_secret_value(), HIDDEN)
        return text

    def _hide_in_value(self, value: object) -> object:
        """Hide secrets: in texts, in member names, and in numbers with the digits of a one-time code."""
        match value:
            case dict():
                return {self._hide_in_text(name): self._hide_in_value(item) for name, item in value.items()}
            case list():
                return [self._hide_in_value(item) for item in value]
            case str():
                return self._hide_in_text(value)
            case int() | Decimal() if not isinstance(value, bool) and self._is_secret(value):
                return HIDDEN
        return value

    def _hide_in_text(self, text: str) -> str:
        """Hide a text that equals a secret, and an API key anywhere in a text.

        A one-time code inside a longer text is kept: its digits may occur in an id by chance.
        """
        for secret in self._secrets:
            if text == secret.get_secret_value():
                return HIDDEN
            if len(secret) > _LONGEST_OTP:
                text = text.replace(secret.get_secret_value(), HIDDEN)
        return text

    def _is_secret(self, number: int | Decimal) -> bool:
        """Whether the digits of a number, without a fraction of zeros only, are a secret."""
        digits = f"{Decimal(number).copy_abs():f}"
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return any(digits == secret.get_secret_value() for secret in self._secrets)


class KeyResponseReader(ResponseReader):
    """Reads a response that may hold a new API key, which cannot be searched for because it is not known yet.

    Its errors contain no excerpt of the body, and no part of the provider's message that is as long as a key.
    """

    @property
    def _excerpt(self) -> str:
        return HIDDEN

    def _hide(self, text: str) -> str:
        return _KEY_PATTERN.sub(HIDDEN, super()._hide(text))


def _texts(value: object) -> list[str]:
    """Return the texts of a message: a string, a list, or an object with a message per field."""
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
    """Collapse white space, remove unprintable characters, and truncate."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= length else line[: length - 1] + "…"
