"""Named places in the code at which a fault test can kill or freeze the process. Without such a test they do
nothing.

`COUNTERSIGN_FAULT_POINT="send.claimed=kill,confirm.seen=stop"`: the first process that reaches the place is
killed or frozen there, once. The settings refuse this variable outside the sandbox.
"""

import os
import signal

from django.conf import settings

NAMES = frozenset(
    {
        "batch.chunk_created",  # the next rows of a batch are operations, others wait
        "release.committed",  # the release is committed, the worker not notified
        "send.name_resolved",  # the name of the account's holder is read, nothing else yet
        "send.before_claim",  # the watermark is read
        "send.claimed",  # the attempt is stored, nothing is sent
        "send.before_request",  # the connection for the request is not made yet
        "send.connected",  # the connection is ready; that the request begins is not stored
        "send.begun",  # it is stored, the first byte not written
        "send.response_received",  # the response is received and not stored
        "send.recorded",  # the response is stored
        "confirm.seen",  # the provider's list is read, the result not stored
        "confirm.closed",  # the result is stored
        "mirror.read",  # some pages of a pass are read, none merged
        "mirror.merged",  # they are merged, and the position is stored
        "export.writing",  # part of the file is written
        "export.written",  # all of it is written, still under its temporary name
        "export.stored",  # it is in the store of exports, and no export names it
        "notifications.recorded",  # messages are stored and the cursor is advanced, neither is committed
        "notifications.claimed",  # messages are claimed, nothing is delivered
    }
)
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def reach(name: str) -> None:
    """Kill or freeze this process if a test configured it and no process has reached this point before."""
    configured = settings.FAULT_POINTS.get(name)
    if configured is not None and _is_first(name):
        os.kill(os.getpid(), SIGNALS[configured])


def _is_first(name: str) -> bool:
    try:
        (settings.DATA_DIR / f"fault-{name}").open("x").close()
    except FileExistsError:
        return False
    return True
