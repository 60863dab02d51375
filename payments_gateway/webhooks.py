"""Verify and parse the webhooks that arrive at the callback URL.

A webhook proves little, so callers use it only to trigger a read of the provider:

* The signature covers `data` alone: anyone who has seen one delivery can send its data again with another
  `event`.
* Deliveries have no date and no sequence number: one may arrive twice, late, out of order, or be replayed.

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
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from pydantic import ValidationError

from payments_gateway.errors import InputError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.money import UnreadableError, dumps, loads
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import EventKind
from payments_gateway.resources.payments import PaymentUpdate
from payments_gateway.resources.transactions import TransactionUpdate
from payments_gateway.responses import rename_members

MAX_BODY_BYTES = 64 * 1024
"""Bytes. A normal delivery has about one thousand; a longer body is malformed and is not parsed."""

MAX_MEMBERS = 100
"""Top-level members. A normal delivery has three; the limit bounds the time to parse one."""

MAX_NUMBER_LENGTH = 100
"""Characters of a JSON number. No amount has as many, and arithmetic on a million digits is slow."""

_STRUCTURAL_CHARACTER = re.compile(r"[ \t\n\r]*([{}:,])[ \t\n\r]*")


def raw_members(body: bytes) -> dict[str, str]:
    """Return the top-level members of a JSON object, each value as its unparsed text.

    The signature is over that text: to parse and serialize it again would change spaces, order, escapes and
    numbers. Raises UnreadableError.
    """
    if len(body) > MAX_BODY_BYTES:
        raise UnreadableError(_("it is too long"))
    try:
        return _scan_object(body.decode())
    except UnreadableError:
        raise
    except (ValueError, RecursionError):
        why = _("it is not readable JSON")
    raise UnreadableError(why)


def _scan_object(text: str) -> dict[str, str]:
    members: dict[str, str] = {}
    at, mark = _skip_structural_character(text, 0, "{")
    if text.startswith("}", at):
        at, mark = _skip_structural_character(text, at, "}")
    while mark != "}":
        name, at = _scan_name(text, at)
        if name in members or len(members) == MAX_MEMBERS:
            raise UnreadableError(_("it contains one name twice, or too many members"))
        start, _end = _skip_structural_character(text, at, ":")
        _value, end = _VALUE_SCANNER.raw_decode(text, start)
        members[name] = text[start:end]
        at, mark = _skip_structural_character(text, end, ",}")
    if at != len(text):
        raise UnreadableError(_("it contains data after its end"))
    return members


def _skip_structural_character(text: str, at: int, marks: str) -> tuple[int, str]:
    """Skip one of these characters and the white space around it. Return the next position and the character."""
    found = _STRUCTURAL_CHARACTER.match(text, at)
    if found is None or found[1] not in marks:
        raise UnreadableError(_("it is not a JSON object"))
    return found.end(), found[1]


def _checked_digits(text: str) -> str:
    if len(text) > MAX_NUMBER_LENGTH:
        raise UnreadableError(_("it contains a number that is too large"))
    return text


_VALUE_SCANNER = json.JSONDecoder(parse_float=_checked_digits, parse_int=_checked_digits)
"""Finds the end of a value only; `loads` parses it."""


def _scan_name(text: str, at: int) -> tuple[str, int]:
    if not text.startswith('"', at):
        raise UnreadableError(_("a name is not text"))
    return _VALUE_SCANNER.raw_decode(text, at)


MIN_KEY_BITS = 2048
MAX_KEY_BITS = 8192
"""Bits of an RSA key. A smaller key can be forged; a larger one makes verification slow."""

MAX_PUBLIC_KEYS = 2
"""Keys that may be valid at once, during a key rotation of the provider."""

_LONGEST_SIGNATURE = 4 * MAX_KEY_BITS // 8
_DEFAULT_PROFILE = ProviderProfile()
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.AUTO)
_PSS_OF_SIGNER = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.MAX_LENGTH)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key of the provider. `fingerprint` is the SHA-256 of its DER form in hex, for display."""

    fingerprint: str
    rsa: RSAPublicKey = field(repr=False, compare=False)


def load_public_key(pem: str | bytes) -> PublicKey:
    """Read one RSA public key of 2048 to 8192 bits in PEM. Raises InputError with the reason."""
    raw = pem.encode() if isinstance(pem, str) else pem
    if b"PRIVATE KEY-----" in raw:
        raise InputError(
            _("This is a private key, which only the provider may have. Use the provider's public key.")
        )
    if raw.count(b"-----BEGIN ") != 1:
        raise InputError(_("Use exactly one public key in PEM, beginning with -----BEGIN PUBLIC KEY-----."))
    key = _parse_pem(raw)
    if not isinstance(key, RSAPublicKey):
        raise InputError(_("This is not an RSA key. The provider signs with RSA."))
    if not MIN_KEY_BITS <= key.key_size <= MAX_KEY_BITS:
        raise InputError(
            _("The key has {bits} bits; it must have between {fewest} and {most}."),
            bits=key.key_size,
            fewest=MIN_KEY_BITS,
            most=MAX_KEY_BITS,
        )
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(hashlib.sha256(der).hexdigest(), key)


def _parse_pem(raw: bytes) -> object:
    try:
        return load_pem_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as exc:
        raise InputError(_("This is not a public key in PEM, or it is damaged.")) from exc


class SignatureStatus(enum.Enum):
    """Result of verifying a delivery, as defined in `verify_webhook`."""

    VALID = "valid"
    INVALID = "invalid"
    UNSIGNED = "unsigned"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class ReceivedWebhook:
    """A delivery with the result of its verification. Even a valid one is only a reason to read the provider.

    * `event` is the text as sent; the signature does not cover it.
    * `data` has exact numbers (int, Decimal). It and `event` are set for invalid and unsigned deliveries as
      well, and empty for malformed ones.
    * `key` is the key that signed it, if any.
    * `error` is what makes a malformed delivery unreadable, for the end of a sentence.
    * `identity` is the `webhook_identity` of its body.
    """

    signature_status: SignatureStatus
    event: str = ""
    data: dict[str, object] = field(default_factory=dict)
    key: PublicKey | None = None
    error: str = ""
    identity: str = field(default="", compare=False)
    profile: ProviderProfile = field(default=_DEFAULT_PROFILE, repr=False, compare=False)

    @property
    def kind(self) -> EventKind | None:
        """The kind of event, compared without case; None for an unknown one."""
        return self.profile.event_kind(self.event)

    def typed_data(self) -> TransactionUpdate | PaymentUpdate | None:
        """Return the data parsed by its kind of event; None for other kinds and for data of another shape."""
        schema = _DATA_SCHEMAS.get(self.kind)
        try:
            return schema.model_validate(rename_members(self.data, self._member_names)) if schema else None
        except ValidationError:
            return None

    @property
    def _member_names(self) -> Mapping[str, Sequence[str]]:
        return {
            "session_id": self.profile.delivery_session_members,
            "reference": self.profile.delivery_reference_members,
            "failure_reason": self.profile.delivery_failure_members,
            "resolve_id": self.profile.delivery_resolution_members,
        }


_DATA_SCHEMAS: Mapping[EventKind | None, type[TransactionUpdate | PaymentUpdate]] = {
    EventKind.TRANSACTION_UPDATED: TransactionUpdate,
    EventKind.PAYMENT_CREATED: PaymentUpdate,
    EventKind.PAYMENT_UPDATED: PaymentUpdate,
}


def verify_webhook(
    body: bytes, public_keys: Sequence[PublicKey], profile: ProviderProfile = _DEFAULT_PROFILE
) -> ReceivedWebhook:
    """Verify the body of a delivery with one or two public keys. Never raises for any content of the body.

    * valid: one of the keys signed exactly these bytes of `data` (RSASSA-PSS, SHA-256, MGF1 with SHA-256, any
      salt length, over the raw JSON text of the top-level member `data`);
    * invalid: well-formed, with a signature that no key confirms or that is not base64;
    * unsigned: well-formed, with a missing, null or empty signature;
    * malformed: not a JSON object in UTF-8 with a text `event` and an object `data`; or a signature that is not
      text, a repeated top-level name, nesting deeper than `money.DEEPEST_NESTING`, an exponent beyond
      `money.LARGEST_EXPONENT`, or more than `MAX_BODY_BYTES`, `MAX_MEMBERS` or `MAX_NUMBER_LENGTH`.

    The profile defines the names of the members and of the kinds of event. Raises ValueError unless one or
    two keys are given.
    """
    if not 1 <= len(public_keys) <= MAX_PUBLIC_KEYS:
        raise ValueError(
            f"A delivery is verified by one or {MAX_PUBLIC_KEYS} public keys, not {len(public_keys)}."
        )
    try:
        members = raw_members(body)
        event, data, signature = _parse_members(members, profile)
    except UnreadableError as exc:
        return ReceivedWebhook(
            SignatureStatus.MALFORMED, error=str(exc), identity=_sha256(body), profile=profile
        )
    raw, signed = _decode_signature(signature), members[profile.delivery_data_member].encode()
    webhook = partial(
        ReceivedWebhook, event=event, data=data, identity=_identity_of(body, signed, raw), profile=profile
    )
    if not signature:
        return webhook(SignatureStatus.UNSIGNED)
    key = next((key for key in public_keys if _has_signed(key, raw, signed)), None)
    if key is None:
        return webhook(SignatureStatus.INVALID)
    return webhook(SignatureStatus.VALID, key=key)


@dataclass(frozen=True, slots=True)
class SelfSignedWebhook:
    """A delivery signed with a key of its own. It is valid only for an endpoint that has `public_pem`."""

    body: bytes
    public_pem: str


def self_signed_webhook(
    event: str, data: Mapping[str, str], profile: ProviderProfile = _DEFAULT_PROFILE
) -> SelfSignedWebhook:
    """Write a delivery as the provider does and sign it with a new key, to test a receiver.

    The private key is discarded, so no other delivery can be signed with it. Making the key takes up to a second.
    """
    key = generate_private_key(public_exponent=65_537, key_size=MIN_KEY_BITS)
    signed = dumps(data)
    members = {
        profile.delivery_event_member: dumps(event),
        profile.delivery_data_member: signed,
        profile.delivery_signature_member: dumps(
            base64.b64encode(key.sign(signed.encode(), _PSS_OF_SIGNER, hashes.SHA256())).decode()
        ),
    }
    body = ",".join(f"{dumps(name)}:{text}" for name, text in members.items())
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return SelfSignedWebhook(f"{{{body}}}".encode(), pem.decode())


def webhook_identity(body: bytes, profile: ProviderProfile = _DEFAULT_PROFILE) -> str:
    """Return a SHA-256 in hex that identifies a delivery however it is serialized, to deduplicate deliveries.

    It covers the bytes of `data` and the decoded signature. Everything else can be changed at will by anyone
    who has seen one delivery: the event, further members, white space, the base64 spelling. The provider
    signs with a new salt each time, so two genuine deliveries differ. Without a readable signature, the
    identity is that of the exact body.

    Never raises for any content of the body.
    """
    try:
        members = raw_members(body)
        signature = _parse_members(members, profile)[2]
    except UnreadableError:
        return _sha256(body)
    return _identity_of(body, members[profile.delivery_data_member].encode(), _decode_signature(signature))


def _identity_of(body: bytes, signed: bytes, signature: bytes) -> str:
    return _sha256(signed, signature) if signature else _sha256(body)


def _sha256(*pieces: bytes) -> str:
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def _parse_members(
    members: Mapping[str, str], profile: ProviderProfile
) -> tuple[str, dict[str, object], str]:
    values = {name: loads(text) for name, text in members.items()}
    event, data = values.get(profile.delivery_event_member), values.get(profile.delivery_data_member)
    signature = values.get(profile.delivery_signature_member)
    if not isinstance(event, str):
        raise UnreadableError(_("it contains no event"))
    if not isinstance(data, dict):
        raise UnreadableError(_("it contains no data"))
    if not isinstance(signature, str | None):
        raise UnreadableError(_("its signature is not text"))
    return event, data, signature or ""


def _decode_signature(signature: str) -> bytes:
    """Decode the base64 signature; empty if it is not base64 or longer than any signature."""
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
