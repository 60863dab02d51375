"""Kill the processes of a stack that was itself killed and could not end them: `python -m tools.watchdog`.

It reads process groups, one per line, from a pipe that the kernel closes when the stack is gone. This works
on Linux and macOS. A stack that ends its processes itself ends its watchdog last.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Wait for the end of the input, then kill every process group listed."""
    for group in [int(line) for line in sys.stdin]:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
