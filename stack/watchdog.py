"""Ends what a stack started, where the stack was killed outright and cannot do it: `python -m stack.watchdog`.

It is told process groups, a line each, through a pipe. The kernel closes that pipe when the stack is gone, however it
went; that works on Linux and macOS alike. A stack that ends its processes itself ends its watchdog last.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Wait for the end of the input, then kill every group that it named."""
    for group in [int(line) for line in sys.stdin]:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
