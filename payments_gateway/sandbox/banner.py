"""What the simulation says when it starts."""

from collections.abc import Sequence
from typing import Any

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.models import Simulation
from payments_gateway.sandbox.wire import credentials


def text(simulation: Simulation, address: Sequence[Any]) -> str:
    """A few lines: what this is, where it listens, how to get in, and where the tokens are."""
    host, port = address[0], address[1]
    base = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    return "\n".join(
        (
            "",
            "SIMULATION: this is not the Business Payments API. It is a sandbox and moves nothing.",
            f"  Base addresses {base}/v2 and {base}/v4",
            f"  Console        {base}/_sandbox/   (balances, the present token)",
            f"  X-Api-Key      {credentials.API_KEY}",
            f"  X-Api-User     {credentials.API_USER}",
            f"  X-User-Version {credentials.USER_VERSIONS[0]}",
            f"  One-time code  {simulation.one_time_code}   (otp; totp codes are on the console)",
            f"  History        {simulation.last_seeded_id} transactions of seed {simulation.seed},"
            f" until {clock.stamp(simulation.seeded_until)}",
            f"Sandbox ready at {base}",
        )
    )
