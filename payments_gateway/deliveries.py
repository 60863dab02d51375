"""The webhooks that arrive at the callback URL.

What a delivery proves is little, so it is a hint that starts a re-read, and never more:

* the signature covers `data` alone: anybody who has seen one delivery can send its data again under another `event`;
* nothing dates a delivery or numbers it: it may come twice, late, out of order, or be replayed after a month.

No state of money may follow from a delivery without a read of the service (open points, "Webhook deliveries").
"""

import base64
import enum
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from pydantic import ValidationError

from payments_gateway._answers import renamed
from payments_gateway._raw_members import raw_members
from payments_gateway.dialect import Dialect, EventKind
from payments_gateway.money import UnreadableError, loads
from payments_gateway.schemas.callbacks import PaymentNews, TransactionNews

SMALLEST_KEY = 2048
LARGEST_KEY = 8192
"""Bits of an RSA key. A smaller one can be forged, a larger one makes every delivery slow to verify."""

MOST_KEYS = 2
"""Keys that are in force at once while the service changes them."""

_LONGEST_SIGNATURE = 4 * LARGEST_KEY // 8
_DIALECT = Dialect()
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


class SignatureVerdict(enum.Enum):
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
    empty. `key` is the one that signed, if any. `problem` says in words why the verdict is not valid. `identity` is
    what `identity` says of its body.
    """

    verdict: SignatureVerdict
    event: str = ""
    data: dict[str, object] = field(default_factory=dict)
    key: PublicKey | None = None
    problem: str = ""
    identity: str = field(default="", compare=False)
    dialect: Dialect = field(default=_DIALECT, repr=False, compare=False)

    @property
    def kind(self) -> EventKind | None:
        """The kind of event, compared without case; None for one that is not known."""
        return self.dialect.event_kind(self.event)

    def news(self) -> TransactionNews | PaymentNews | None:
        """Return the data as what its kind holds; None for other kinds, and for data that does not fit its kind."""
        schema = _NEWS.get(self.kind)
        try:
            return schema.model_validate(renamed(self.data, self._places)) if schema else None
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


_NEWS: Mapping[EventKind | None, type[TransactionNews | PaymentNews]] = {
    EventKind.TRANSACTION_UPDATED: TransactionNews,
    EventKind.PAYMENT_CREATED: PaymentNews,
    EventKind.PAYMENT_UPDATED: PaymentNews,
}


def verify(body: bytes, public_keys: Sequence[PublicKey], dialect: Dialect = _DIALECT) -> Delivery:
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
    if not 1 <= len(public_keys) <= MOST_KEYS:
        raise ValueError(f"A delivery is verified by one or {MOST_KEYS} public keys, not {len(public_keys)}.")
    try:
        members = raw_members(body)
        event, data, signature = _contents(members, dialect)
    except UnreadableError as exc:
        problem = f"The delivery cannot be read: {exc}."
        return Delivery(SignatureVerdict.MALFORMED, problem=problem, identity=_hashed(body), dialect=dialect)
    raw, signed = _decoded(signature), members[dialect.delivery_data_member].encode()
    judged = partial(Delivery, event=event, data=data, identity=_identity(body, signed, raw), dialect=dialect)
    if not signature:
        return judged(SignatureVerdict.UNSIGNED, problem="The delivery carries no signature.")
    key = next((key for key in public_keys if _has_signed(key, raw, signed)), None)
    if key is None:
        return judged(SignatureVerdict.INVALID, problem="No known key made this signature.")
    return judged(SignatureVerdict.VALID, key=key)


def identity(body: bytes, dialect: Dialect = _DIALECT) -> str:
    """What makes a delivery the same one however it is written: a SHA-256, in hex. Never raises for what a body holds.

    It is taken over the bytes of `data` and of the signature, decoded. All the rest anybody can change who has seen one
    delivery, and as often as they like: the event, further members, spaces, the spelling of the base64. The service
    signs with a new salt each time, so two deliveries of its own differ. What carries no signature that can be read is
    the same only byte for byte.
    """
    try:
        members = raw_members(body)
        _, _, signature = _contents(members, dialect)
    except UnreadableError:
        return _hashed(body)
    return _identity(body, members[dialect.delivery_data_member].encode(), _decoded(signature))


def _identity(body: bytes, signed: bytes, signature: bytes) -> str:
    return _hashed(signed, signature) if signature else _hashed(body)


def _hashed(*pieces: bytes) -> str:
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def _contents(members: Mapping[str, str], dialect: Dialect) -> tuple[str, dict[str, object], str]:
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


def _decoded(signature: str) -> bytes:
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
