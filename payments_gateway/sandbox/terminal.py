"""What the simulation says on standard output."""

import sys


def announce(text: str) -> None:
    """Write lines that are seen at once, also through a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
