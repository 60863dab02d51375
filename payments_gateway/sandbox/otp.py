"""One-time codes of the sandbox: authenticator codes (`totp`, RFC 6238) and codes it issues itself (`otp`).

`totp`: SHA-1, six digits, steps of 30 seconds, one step of tolerance to either side. After a code was used,
neither it nor an older one is accepted.

`otp`: exactly one code is valid at a time, shown on the console and printed on standard output. A new one is
issued at the first start, after each use, and on reset.
"""

import base64
import hashlib
import hmac
import secrets
import struct
import sys
from dataclasses import dataclass
from datetime import datetime

from django.db.transaction import on_commit

from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.models import SandboxState


def print_now(text: str) -> None:
    """Print without buffering, also into a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


STEP_SECONDS = 30
_DRIFT_STEPS = 1


@dataclass(frozen=True, slots=True)
class OneTimeCode:
    """The code in a request; `type` is otp or totp."""

    type: str
    code: str


def new_secret() -> str:
    """A TOTP secret of 160 bits in base32, as authenticator apps take it."""
    return base64.b32encode(secrets.token_bytes(20)).decode()


def new_code() -> str:
    """Six random digits."""
    return f"{secrets.randbelow(1_000_000):06d}"


def step_of(moment: datetime) -> int:
    """The number of the TOTP step at this time."""
    return int(moment.timestamp()) // STEP_SECONDS


def totp(secret: str, step: int) -> str:
    """The six digits of one step (RFC 4226, section 5.3)."""
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", step), hashlib.sha1).digest()
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"


def one_time_code(type: str | None, code: str | None) -> OneTimeCode | None:
    """The code of a request, if it has one; without a type: `otp` if it is the issued code, `totp` otherwise."""
    if code is None or type is not None:
        return None if code is None or type is None else OneTimeCode(type, code)
    issued = SandboxState.objects.get().one_time_code
    return OneTimeCode("otp" if _equal_in_constant_time(issued, code) else "totp", code)


def use_code(code: OneTimeCode | None, *, at: datetime, member: str = "token") -> None:
    """Accept the one-time code and mark it used, inside the caller's transaction; or raise RefusedError 400.

    `member` is the name of the request member for the code.
    """
    state = SandboxState.objects.get()
    if code is None:
        if state.otp_required:
            raise RefusedError(400, f"{member} is required", [(member, "is required")])
        return
    is_totp = code.type == "totp"
    problem = _use_totp(state, code.code, step_of(at)) if is_totp else _use_one_time_code(state, code.code)
    if problem:
        raise RefusedError(400, f"{member} {problem}", [(member, problem)])


def _use_totp(state: SandboxState, code: str, present: int) -> str:
    """The reason for a rejection; empty if the code was accepted."""
    steps = range(present - _DRIFT_STEPS, present + _DRIFT_STEPS + 1)
    matching = [step for step in steps if _equal_in_constant_time(totp(state.totp_secret, step), code)]
    if not matching:
        return "is not valid or has expired"
    if state.token_reuse:
        return ""
    fresh = [step for step in matching if step > state.last_totp_step]
    if not fresh:
        return "has already been used"
    state.last_totp_step = fresh[0]
    state.save(update_fields=["last_totp_step"])
    return ""


def _use_one_time_code(state: SandboxState, code: str) -> str:
    """The reason for a rejection; empty if the code was accepted."""
    if not _equal_in_constant_time(state.one_time_code, code):
        return "is not valid or has already been used"
    if not state.token_reuse:
        issue_code(state)
    return ""


def _equal_in_constant_time(ours: str, given: str) -> bool:
    return hmac.compare_digest(ours.encode(), given.encode())


def issue_code(state: SandboxState) -> None:
    """Replace the issued code, and print the new one after the commit."""
    code = new_code()
    state.one_time_code = code
    state.save(update_fields=["one_time_code"])
    on_commit(lambda: print_now(f"A new one-time code (otp) was issued: {code}"))
