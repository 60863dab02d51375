"""The options of the simulation's command line, shared by `manage.py sandbox`. Knows nothing of Django."""

import argparse

_YEAR_OF_SECONDS = 365 * 24 * 60 * 60


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options, with their defaults."""
    parser.add_argument("--port", type=_port, default=8001, help="0 takes any free port (default: 8001)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--database", default="var/sandbox.sqlite3", help="database file, made when missing")
    parser.add_argument("--seed", type=int, default=1, help="which history a new database is filled with")
    parser.add_argument("--transactions", type=_count, default=6_000, help="how long that history is")
    parser.add_argument(
        "--settle-after", type=_seconds, default=8.0, help="seconds a withdrawal stays processing"
    )


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError("must be between 0 and 65535")
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 3:
        raise argparse.ArgumentTypeError("must be at least 3: one opening deposit for each currency")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= _YEAR_OF_SECONDS:
        raise argparse.ArgumentTypeError("must be between 0 and a year")
    return seconds
