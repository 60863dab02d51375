"""Which operation of the specification a request asks for, by its method and path."""

from collections.abc import Iterator

from payments_gateway.door import Door
from payments_gateway.operations import OPERATIONS, Operation

V2 = "/v2"
V4 = "/v4"
_BASES = {Door.V2: V2, Door.V2_OPEN: V2, Door.V4: V4}

OTHER_SPELLINGS = {
    "api_keys.generate": "/user/apikey",
    "api_keys.list": "/user/apikeys",
    "api_keys.scopes": "/user/apikey-scope",
    "api_keys.invalidate": "/user/invalidate-apikey",
    "api_keys.delete": "/user/apikey",
}
"""Paths of key management that are in use beside those of the specification; the service knows both."""


def operation_at(method: str, path: str) -> Operation | None:
    """The operation, or None for a path beyond the specification and for a method that it does not have."""
    return _TABLE.get((method, path))


def _entries() -> Iterator[tuple[tuple[str, str], Operation]]:
    for operation in OPERATIONS:
        for path in (operation.path, OTHER_SPELLINGS.get(operation.name, operation.path)):
            yield (operation.method, _BASES[operation.door] + path), operation


_TABLE = dict(_entries())
