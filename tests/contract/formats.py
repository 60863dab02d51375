"""What random data looks like where any text would do for the document, but only some get past the first check.

The strategies mix values that the simulated world knows with ones that it does not. No address ever leads off this
machine, and the key in use is never among the keys.
"""

import schemathesis
from hypothesis import strategies as st

from payments_gateway import BANKS
from tests.contract.document import is_printable

PRESENT_TOKEN = "present"
"""Stands for the token of the moment; the test puts it in."""

_CALLBACKS = ("http://127.0.0.1:9/hook", "http://127.0.0.1:9/", "http://localhost:9/hook?merchant=1")
_ADDRESSES = (
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
)

printable = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" "),
    min_size=1,
    max_size=120,
).filter(is_printable)

STRATEGIES = {
    "printable": printable,
    "one-time-password": st.just(PRESENT_TOKEN) | st.from_regex("[0-9]{6}", fullmatch=True),
    "bank-account": st.from_regex("[0-9]{10}", fullmatch=True),
    "bank-code": st.sampled_from(sorted(BANKS)) | st.from_regex("[0-9]{3,6}", fullmatch=True),
    "username": st.sampled_from(["kelechi", "amina", "nobody-here", "broke99"]) | printable,
    "business-id": st.just("b5f1c2d94a7e4f0ba1c83d56") | printable,
    "crypto-network": st.sampled_from(["TRC20", "ERC20", "BEP20", "BTC"]) | printable,
    "crypto-currency": st.sampled_from(["USDT", "BTC", "ETH"]) | printable,
    "payout-currency": st.sampled_from(["NGN", "USD"]) | printable,
    "crypto-address": st.sampled_from(_ADDRESSES) | printable,
    "callback-url": st.sampled_from(_CALLBACKS),
    "api-key": st.from_regex("sandbox-[A-Za-z0-9_-]{43}", fullmatch=True) | printable,
    "key-hash": st.from_regex("[0-9a-f]{8}", fullmatch=True),
}


def register() -> None:
    """Let schemathesis draw from these wherever the document names the format."""
    for name, strategy in STRATEGIES.items():
        schemathesis.openapi.format(name, strategy)
