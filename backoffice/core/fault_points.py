"""Named places at which a test has a process killed or frozen for real. Outside such a test they do nothing.

`COUNTERSIGN_FAULT_POINT="send.claimed=kill,confirm.seen=stop"`: the first process that reaches the place is killed
or frozen there, once. Settings refuse to start with it outside the sandbox.
"""

import os
import signal

from django.conf import settings

NAMES = frozenset(
    {
        "release.committed",  # the word to send is given, the doorbell not rung
        "send.before_claim",  # the watermark is read
        "send.claimed",  # the attempt is open, nothing is sent
        "send.leaving",  # the next thing is the request
        "send.answered",  # the answer is in hand, and written down nowhere
        "send.recorded",  # the answer is written down
        "confirm.seen",  # the list is read, and nothing of it written down
        "confirm.closed",  # what it proved is written down
        "mirror.read",  # some pages of a pass are read, and nothing of them is merged
        "mirror.merged",  # they are merged, with the place that was reached
        "export.writing",  # some of a file is written
        "export.written",  # all of it is, under a name for which nobody looks
    }
)
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def reach(name: str) -> None:
    """Be killed or frozen here if a test wants it and no process was before."""
    wanted = settings.FAULT_POINTS.get(name)
    if wanted is not None and _is_first(name):
        os.kill(os.getpid(), SIGNALS[wanted])


def _is_first(name: str) -> bool:
    try:
        (settings.DATA_DIR / f"fault-{name}").open("x").close()
    except FileExistsError:
        return False
    return True
