"""The callback URL, and the webhooks that arrive there.

What a delivery proves is little, so it is a hint that starts a re-read, and never more:

* the signature covers `data` alone: anybody who has seen one delivery can send its data again under another `event`;
* nothing dates a delivery or numbers it: it may come twice, late, out of order, or be replayed after a month.

No state of money may follow from a delivery without a read of the service (open points, "Webhook deliveries").
"""

import base64
import enum
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from pydantic import ValidationError

from payments_gateway._answers import Reply, acknowledged
from payments_gateway._transport import Transport
from payments_gateway.dialect import Dialect
from payments_gateway.money import UnreadableError, loads
from payments_gateway.schemas.callbacks import CallbackUrl, EventKind, PaymentNews, TransactionNews

LARGEST_BODY = 64 * 1024
"""Bytes. A delivery has about one thousand; a longer body is malformed, unread."""

SMALLEST_KEY = 2048
LARGEST_KEY = 8192
"""Bits of an RSA key. A smaller one can be forged, a larger one makes every delivery slow to verify."""

MOST_KEYS = 2
"""Keys that are in force at once while the service changes them."""

MOST_MEMBERS = 100
"""Members at the top level. A delivery has three; each more costs a little time."""

LONGEST_NUMBER = 100
"""Characters of a JSON number. No amount has as many, and arithmetic with a million digits is slow."""

_LONGEST_SIGNATURE = 4 * LARGEST_KEY // 8
_MARK = re.compile(r"[ \t\n\r]*([{}:,])[ \t\n\r]*")
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)


class Callbacks:
    """The operations under /callbackurl."""

    def __init__(self, transport: Transport, dialect: Dialect) -> None:
        self._transport = transport
        self._dialect = dialect

    def set_url(self, url: str) -> None:
        """Let the service send its webhooks to this address from now on (PUT /callbackurl).

        An http or https URL of at most 2048 characters; pydantic's ValidationError otherwise, and nothing was sent.
        Sent once and never repeated by the client; setting the same address again is harmless. Raises RejectedError
        when the service refused, NotSentError when nothing left this machine, OutcomeUnknownError otherwise: then
        `url` tells. The answer has `success` and `message` only. Specification: Endpoints, PUT /callbackurl; Events.
        """
        body = CallbackUrl(callback_url=url).model_dump(by_alias=True)
        self._transport.send_once("PUT", "/callbackurl", body, into=acknowledged)

    def url(self) -> str:
        """Return the address that webhooks go to, empty when none is set (GET /callbackurl).

        May be repeated. Raises RejectedError when the service refused, ReadFailedError otherwise.
        Specification: Endpoints, GET /callbackurl.
        """
        return self._transport.read("GET", "/callbackurl", into=_url)


def _url(reply: Reply) -> str:
    url = reply.data.get("callbackUrl")
    if not isinstance(url, str | None):
        raise UnreadableError("its callback URL is not a text")
    return url or ""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that the service signs with. `fingerprint` is the SHA-256 of its DER form, in hex, to show to people."""

    fingerprint: str
    rsa: RSAPublicKey = field(repr=False, compare=False)


def load_public_key(pem: str | bytes) -> PublicKey:
    """Read one RSA public key of 2048 to 8192 bits in PEM. Raises ValueError that says what is wrong with it."""
    raw = pem.encode() if isinstance(pem, str) else pem
    if b"PRIVATE KEY-----" in raw:
        raise ValueError("This is a private key, which only the service may have. Give its public key.")
    if raw.count(b"-----BEGIN ") != 1:
        raise ValueError("Give exactly one public key in PEM, beginning with -----BEGIN PUBLIC KEY-----.")
    key = _any_key(raw)
    if not isinstance(key, RSAPublicKey):
        raise ValueError("The service signs with RSA, and this is a key of another kind.")
    if not SMALLEST_KEY <= key.key_size <= LARGEST_KEY:
        raise ValueError(
            f"The key has {key.key_size} bits; it must have between {SMALLEST_KEY} and {LARGEST_KEY}."
        )
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(hashlib.sha256(der).hexdigest(), key)


def _any_key(raw: bytes) -> object:
    try:
        return load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as exc:
        raise ValueError("This is not a public key in PEM, or it is damaged.") from exc


class Verdict(enum.Enum):
    """What the signature of a delivery says."""

    VALID = "valid"
    INVALID = "invalid"
    UNSIGNED = "unsigned"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook delivery, judged. Valid or not, it is a hint: read the service again, and believe that.

    `event` is the text as sent, and not covered by the signature. `data` has exact numbers (int, Decimal). Both are
    handed over whenever they could be read, so also for deliveries that are not valid; of a malformed one they are
    empty. `key` is the one that signed, if any. `problem` says in words why the verdict is not valid.
    """

    verdict: Verdict
    event: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
    key: PublicKey | None = None
    problem: str = ""

    @property
    def kind(self) -> EventKind | None:
        """The kind of event, compared without case; None for one that is not known."""
        return _KINDS.get(self.event.strip().lower())

    def news(self) -> TransactionNews | PaymentNews | None:
        """Return the data as what its kind holds; None for other kinds, and for data that does not fit its kind."""
        schema = _NEWS.get(self.kind)
        try:
            return schema.model_validate(self.data) if schema else None
        except ValidationError:
            return None


_KINDS = {kind.value: kind for kind in EventKind}
_NEWS: Mapping[EventKind | None, type[TransactionNews | PaymentNews]] = {
    EventKind.TRANSACTION_UPDATED: TransactionNews,
    EventKind.PAYMENT_CREATED: PaymentNews,
    EventKind.PAYMENT_UPDATED: PaymentNews,
}


def verify(body: bytes, public_keys: Sequence[PublicKey]) -> Delivery:
    """Judge the body of a delivery by one or two public keys. Never raises for anything that a body can hold.

    * valid: one of the keys signed these very bytes of `data` (RSASSA-PSS, SHA-256, MGF1 of SHA-256, any length of
      salt, over the raw JSON text of the top-level member `data`);
    * invalid: well-formed, with a signature that neither key confirms or that is not base64;
    * unsigned: well-formed, with no signature, null or an empty one;
    * malformed: not a JSON object in UTF-8 with a text `event` and an object `data`; or a top-level name given twice,
      nesting deeper than `money.DEEPEST_NESTING`, an exponent beyond `money.LARGEST_EXPONENT`, a text longer than
      `LARGEST_BODY`, a number longer than `LONGEST_NUMBER`, more members than `MOST_MEMBERS`.

    Raises ValueError for no key and for more than two.
    """
    if not 1 <= len(public_keys) <= MOST_KEYS:
        raise ValueError(f"A delivery is verified by one or {MOST_KEYS} public keys, not {len(public_keys)}.")
    try:
        members = _raw_members(body)
        event, data, signature = _contents(members)
    except UnreadableError as exc:
        return Delivery(Verdict.MALFORMED, problem=f"The delivery cannot be read: {exc}.")
    if not signature:
        return Delivery(Verdict.UNSIGNED, event, data, problem="The delivery carries no signature.")
    key = _signer(signature, members["data"].encode(), public_keys)
    if key is None:
        return Delivery(Verdict.INVALID, event, data, problem="No known key made this signature.")
    return Delivery(Verdict.VALID, event, data, key)


def _contents(members: Mapping[str, str]) -> tuple[str, dict[str, object], str]:
    values = {name: loads(text) for name, text in members.items()}
    event, data, signature = values.get("event"), values.get("data"), values.get("signature")
    if not isinstance(event, str):
        raise UnreadableError("it names no event")
    if not isinstance(data, dict):
        raise UnreadableError("it holds no data")
    if not isinstance(signature, str | None):
        raise UnreadableError("its signature is not a text")
    return event, data, signature or ""


def _signer(signature: str, data: bytes, public_keys: Sequence[PublicKey]) -> PublicKey | None:
    if len(signature) > _LONGEST_SIGNATURE:
        return None
    try:
        raw = base64.b64decode(signature, validate=True)
    except ValueError:
        return None
    return next((key for key in public_keys if _has_signed(key, raw, data)), None)


def _has_signed(key: PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        key.rsa.verify(signature, data, _PSS, hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _raw_members(body: bytes) -> dict[str, str]:
    """Return the members of the top-level object, each value as the text that stands in the body.

    A parser that writes the values anew would lose what was signed: spaces, order, escapes, spelling of numbers.
    """
    if len(body) > LARGEST_BODY:
        raise UnreadableError(f"it is longer than {LARGEST_BODY} bytes")
    try:
        return _walked(body.decode())
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as exc:
        problem = type(exc).__name__
    raise UnreadableError(f"it is not readable JSON ({problem})")


def _walked(text: str) -> dict[str, str]:
    members: dict[str, str] = {}
    at, mark = _step(text, 0, "{")
    if text.startswith("}", at):
        at, mark = _step(text, at, "}")
    while mark != "}":
        name, at = _name(text, at)
        if name in members or len(members) == MOST_MEMBERS:
            raise UnreadableError("it gives one name twice, or has too many members")
        start, _ = _step(text, at, ":")
        _, end = _EXTENTS.raw_decode(text, start)
        members[name] = text[start:end]
        at, mark = _step(text, end, ",}")
    if at != len(text):
        raise UnreadableError("something follows its end")
    return members


def _step(text: str, at: int, marks: str) -> tuple[int, str]:
    """Pass one of these marks, with the spaces around it. Return where the text goes on, and which mark it was."""
    found = _MARK.match(text, at)
    if found is None or found[1] not in marks:
        raise UnreadableError("it is not a JSON object")
    return found.end(), found[1]


def _digits(text: str) -> str:
    if len(text) > LONGEST_NUMBER:
        raise UnreadableError("it holds a number out of all proportion")
    return text


_EXTENTS = json.JSONDecoder(parse_float=_digits, parse_int=_digits)
"""Finds where a value ends; `loads` reads it."""


def _name(text: str, at: int) -> tuple[str, int]:
    if not text.startswith('"', at):
        raise UnreadableError("a name is no text")
    return _EXTENTS.raw_decode(text, at)
