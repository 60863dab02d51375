"""Verify and parse the webhooks that arrive at the callback URL.

A webhook proves little, so it only triggers a read of the provider:

* the signature covers `data` alone: anyone who has seen one delivery can send its data again under another `event`;
* deliveries carry no date and no number: one may arrive twice, late, out of order, or be replayed a month later.

No state of money may follow from a webhook without a read (open points, "Webhook deliveries").
"""

import base64
import enum
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from pydantic import ValidationError

from payments_gateway.money import UnreadableError, loads
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.points import EventKind
from payments_gateway.responses import rename_members
from payments_gateway.schemas.payments import PaymentUpdate
from payments_gateway.schemas.transactions import TransactionUpdate

MAX_BODY_BYTES = 64 * 1024
"""Bytes. A delivery has about one thousand; a longer body is malformed, unread."""

MAX_MEMBERS = 100
"""Members at the top level. A delivery has three; each more costs a little time."""

MAX_NUMBER_LENGTH = 100
"""Characters of a JSON number. No amount has as many, and arithmetic with a million digits is slow."""

_STRUCTURAL_CHARACTER = re.compile(r"[ \t\n\r]*([{}:,])[ \t\n\r]*")


def raw_members(body: bytes) -> dict[str, str]:
    """Return the members of the top-level object, each value as the text that stands in the body.

    A parser that writes the values anew would lose what was signed: spaces, order, escapes, spelling of numbers.
    """
    if len(body) > MAX_BODY_BYTES:
        raise UnreadableError(f"it is longer than {MAX_BODY_BYTES} bytes")
    try:
        return _scan_object(body.decode())
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as exc:
        problem = type(exc).__name__
    raise UnreadableError(f"it is not readable JSON ({problem})")


def _scan_object(text: str) -> dict[str, str]:
    members: dict[str, str] = {}
    at, mark = _skip_structural_character(text, 0, "{")
    if text.startswith("}", at):
        at, mark = _skip_structural_character(text, at, "}")
    while mark != "}":
        name, at = _scan_name(text, at)
        if name in members or len(members) == MAX_MEMBERS:
            raise UnreadableError("it gives one name twice, or has too many members")
        start, _ = _skip_structural_character(text, at, ":")
        _, end = _VALUE_SCANNER.raw_decode(text, start)
        members[name] = text[start:end]
        at, mark = _skip_structural_character(text, end, ",}")
    if at != len(text):
        raise UnreadableError("something follows its end")
    return members


def _skip_structural_character(text: str, at: int, marks: str) -> tuple[int, str]:
    """Pass one of these marks, with the spaces around it. Return where the text goes on, and which mark it was."""
    found = _STRUCTURAL_CHARACTER.match(text, at)
    if found is None or found[1] not in marks:
        raise UnreadableError("it is not a JSON object")
    return found.end(), found[1]


def _checked_digits(text: str) -> str:
    if len(text) > MAX_NUMBER_LENGTH:
        raise UnreadableError("it holds a number out of all proportion")
    return text


_VALUE_SCANNER = json.JSONDecoder(parse_float=_checked_digits, parse_int=_checked_digits)
"""Finds where a value ends; `loads` reads it."""


def _scan_name(text: str, at: int) -> tuple[str, int]:
    if not text.startswith('"', at):
        raise UnreadableError("a name is no text")
    return _VALUE_SCANNER.raw_decode(text, at)


MIN_KEY_BITS = 2048
MAX_KEY_BITS = 8192
"""Bits of an RSA key. A smaller one can be forged, a larger one makes every delivery slow to verify."""

MAX_PUBLIC_KEYS = 2
"""Keys that are in force at once while the service changes them."""

_LONGEST_SIGNATURE = 4 * MAX_KEY_BITS // 8
_DEFAULT_PROFILE = ProviderProfile()
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)


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
    key = _parse_pem(raw)
    if not isinstance(key, RSAPublicKey):
        raise ValueError("The service signs with RSA, and this is a key of another kind.")
    if not MIN_KEY_BITS <= key.key_size <= MAX_KEY_BITS:
        raise ValueError(
            f"The key has {key.key_size} bits; it must have between {MIN_KEY_BITS} and {MAX_KEY_BITS}."
        )
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(hashlib.sha256(der).hexdigest(), key)


def _parse_pem(raw: bytes) -> object:
    try:
        return load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as exc:
        raise ValueError("This is not a public key in PEM, or it is damaged.") from exc


class SignatureVerdict(enum.Enum):
    """What the signature of a delivery says."""

    VALID = "valid"
    INVALID = "invalid"
    UNSIGNED = "unsigned"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class ReceivedWebhook:
    """A webhook delivery, judged. Valid or not, it is a hint: read the service again, and believe that.

    `event` is the text as sent, and not covered by the signature. `data` has exact numbers (int, Decimal). Both are
    handed over whenever they could be read, so also for deliveries that are not valid; of a malformed one they are
    empty. `key` is the one that signed, if any. `problem` says in words why the verdict is not valid. `identity` is
    what `identity` says of its body.
    """

    verdict: SignatureVerdict
    event: str = ""
    data: dict[str, object] = field(default_factory=dict)
    key: PublicKey | None = None
    problem: str = ""
    identity: str = field(default="", compare=False)
    dialect: ProviderProfile = field(default=_DEFAULT_PROFILE, repr=False, compare=False)

    @property
    def kind(self) -> EventKind | None:
        """The kind of event, compared without case; None for one that is not known."""
        return self.dialect.event_kind(self.event)

    def news(self) -> TransactionUpdate | PaymentUpdate | None:
        """Return the data as what its kind holds; None for other kinds, and for data that does not fit its kind."""
        schema = _DATA_SCHEMAS.get(self.kind)
        try:
            return schema.model_validate(rename_members(self.data, self._places)) if schema else None
        except ValidationError:
            return None

    @property
    def _places(self) -> Mapping[str, Sequence[str]]:
        return {
            "session_id": self.dialect.news_session_members,
            "reference": self.dialect.news_reference_members,
            "failure_reason": self.dialect.news_failure_members,
            "resolve_id": self.dialect.news_resolution_members,
        }


_DATA_SCHEMAS: Mapping[EventKind | None, type[TransactionUpdate | PaymentUpdate]] = {
    EventKind.TRANSACTION_UPDATED: TransactionUpdate,
    EventKind.PAYMENT_CREATED: PaymentUpdate,
    EventKind.PAYMENT_UPDATED: PaymentUpdate,
}


def verify_webhook(
    body: bytes, public_keys: Sequence[PublicKey], dialect: ProviderProfile = _DEFAULT_PROFILE
) -> ReceivedWebhook:
    """Judge the body of a delivery by one or two public keys. Never raises for anything that a body can hold.

    * valid: one of the keys signed these very bytes of `data` (RSASSA-PSS, SHA-256, MGF1 of SHA-256, any length of
      salt, over the raw JSON text of the top-level member `data`);
    * invalid: well-formed, with a signature that neither key confirms or that is not base64;
    * unsigned: well-formed, with no signature, null or an empty one;
    * malformed: not a JSON object in UTF-8 with a text `event` and an object `data`; or a top-level name given twice,
      nesting deeper than `money.DEEPEST_NESTING`, an exponent beyond `money.LARGEST_EXPONENT`, more bytes, members or
      digits of a number than any delivery has (64 KiB, 100 and 100).

    The dialect names the members and the kinds of event; without one its defaults do.
    Raises ValueError for no key and for more than two.
    """
    if not 1 <= len(public_keys) <= MAX_PUBLIC_KEYS:
        raise ValueError(
            f"A delivery is verified by one or {MAX_PUBLIC_KEYS} public keys, not {len(public_keys)}."
        )
    try:
        members = raw_members(body)
        event, data, signature = _parse_members(members, dialect)
    except UnreadableError as exc:
        problem = f"The delivery cannot be read: {exc}."
        return ReceivedWebhook(
            SignatureVerdict.MALFORMED, problem=problem, identity=_sha256(body), dialect=dialect
        )
    raw, signed = _decode_signature(signature), members[dialect.delivery_data_member].encode()
    judged = partial(
        ReceivedWebhook, event=event, data=data, identity=_identity_of(body, signed, raw), dialect=dialect
    )
    if not signature:
        return judged(SignatureVerdict.UNSIGNED, problem="The delivery carries no signature.")
    key = next((key for key in public_keys if _has_signed(key, raw, signed)), None)
    if key is None:
        return judged(SignatureVerdict.INVALID, problem="No known key made this signature.")
    return judged(SignatureVerdict.VALID, key=key)


def webhook_identity(body: bytes, dialect: ProviderProfile = _DEFAULT_PROFILE) -> str:
    """What makes a delivery the same one however it is written: a SHA-256, in hex. Never raises for what a body holds.

    It is taken over the bytes of `data` and of the signature, decoded. All the rest anybody can change who has seen one
    delivery, and as often as they like: the event, further members, spaces, the spelling of the base64. The service
    signs with a new salt each time, so two deliveries of its own differ. What carries no signature that can be read is
    the same only byte for byte.
    """
    try:
        members = raw_members(body)
        _, _, signature = _parse_members(members, dialect)
    except UnreadableError:
        return _sha256(body)
    return _identity_of(body, members[dialect.delivery_data_member].encode(), _decode_signature(signature))


def _identity_of(body: bytes, signed: bytes, signature: bytes) -> str:
    return _sha256(signed, signature) if signature else _sha256(body)


def _sha256(*pieces: bytes) -> str:
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def _parse_members(
    members: Mapping[str, str], dialect: ProviderProfile
) -> tuple[str, dict[str, object], str]:
    values = {name: loads(text) for name, text in members.items()}
    event, data = values.get(dialect.delivery_event_member), values.get(dialect.delivery_data_member)
    signature = values.get(dialect.delivery_signature_member)
    if not isinstance(event, str):
        raise UnreadableError("it names no event")
    if not isinstance(data, dict):
        raise UnreadableError("it holds no data")
    if not isinstance(signature, str | None):
        raise UnreadableError("its signature is not a text")
    return event, data, signature or ""


def _decode_signature(signature: str) -> bytes:
    """Its bytes; none where it is no base64, or longer than any signature."""
    if len(signature) > _LONGEST_SIGNATURE:
        return b""
    try:
        return base64.b64decode(signature, validate=True)
    except ValueError:
        return b""


def _has_signed(key: PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        key.rsa.verify(signature, data, _PSS, hashes.SHA256())
    except InvalidSignature:
        return False
    return True
