from dataclasses import dataclass


@dataclass(frozen=True)
class Download:
    """A file as its reader has it."""

    rows: list[dict[str, str]]
    headers: dict[str, str]
