"""The commonest refusal: one member of the request is wrong."""

from payments_gateway.sandbox.wire.errors import RefusedError


def refused_member(member: str, phrase: str, status: int = 400) -> RefusedError:
    """The refusal that names this member, in its message and in its list of errors."""
    return RefusedError(status, f"{member} {phrase}", [(member, phrase)])
