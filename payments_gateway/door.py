"""Which address a call goes to, and how it shows who calls."""

import enum

from payments_gateway.dialect import Dialect


class Door(enum.Enum):
    """The ways into the service: two base addresses, and what is shown at each."""

    V2 = "v2, with the three headers of the v2 operations"
    V2_OPEN = "v2, without credentials"
    V4 = "v4, with the two headers of the v4 operations"


def door_of_keys(dialect: Dialect) -> Door:
    """Where the five operations of key management are served (specification, Authentication 8: not shown)."""
    return Door.V2 if dialect.key_base == "v2" else Door.V4
