"""The public keys that the vectors of deliveries are signed for."""

from payments_gateway.webhooks import load_public_key
from tests.payments_gateway.vectors.make_vectors import FOLDER

KEYS = {name: load_public_key((FOLDER / f"{name}.pub.pem").read_bytes()) for name in ("current", "previous")}
BOTH = list(KEYS.values())
