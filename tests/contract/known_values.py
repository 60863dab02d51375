"""Values that mean something in the simulated world, put into random requests so that some get past the first check.

No address leads off this machine, and the key in use is never among the keys.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import schemathesis
from hypothesis import strategies as st

from tests.sandbox_process import SandboxProcess

_CALLBACKS = ("http://127.0.0.1:9/hook", "http://127.0.0.1:9/", "http://localhost:9/hook?merchant=1")

VALUES: Mapping[str, Sequence[Any]] = {
    "accountNumber": ("0123456789", "0123456799", "0123456788"),
    "bankCode": ("044", "058"),
    "receiverUsername": ("kelechi", "amina99", "ngozi88"),
    "serviceUsername": ("kelechi", "amina99", "nobody-here"),
    "coinprofileUsername": ("kelechi", "amina99", "nobody-here"),
    "businessId": ("b5f1c2d94a7e4f0ba1c83d56",),
    "network": ("TRC20", "ERC20", "BTC"),
    "address": ("TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
    "incomingCurrency": ("USDT",),
    "outgoingCurrency": ("NGN", "USD"),
    "incomingAmount": (25, 1.5),
    "outgoingAmount": (40_000,),
    "amount": ("2500.00", "1.05"),
    "memo": ("rent", ""),
}
_WALLET: Mapping[str, Sequence[Any]] = {
    **VALUES,
    "currency": ("USDT", "USDC", "BTC"),
    "amount": (25.5, 0.000001),
}


def register_formats() -> None:
    """The one format of our own in the document: random addresses would have webhooks delivered to strangers."""
    schemathesis.openapi.format("callback-url", st.sampled_from(_CALLBACKS))


def put_in(case: schemathesis.Case[Any], provider: SandboxProcess) -> None:
    """Give three of four well-formed requests known values and a valid code; the same ones get the same."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    known = _WALLET if "wallet" in case.path else VALUES
    for members in (case.body, case.query):
        if (
            isinstance(members, dict)
            and (chance := zlib.crc32(json.dumps(members, sort_keys=True).encode())) % 4
        ):
            members |= {name: known[name][chance % len(known[name])] for name in members if name in known}
            members |= _tokens(members, provider)


def _tokens(body: Mapping[str, Any], provider: SandboxProcess) -> dict[str, str]:
    is_issued = body.get("otpType") == "otp"
    return {
        member: provider.issued_otp() if is_issued else provider.totp()
        for member in ("token", "otp")
        if member in body
    }
