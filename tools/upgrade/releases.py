"""The releases that `releases.toml` lists, and what git knows of them."""

import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.processes import ROOT, run_python


class ReleaseUnknownError(Exception):
    """Git does not have the commit of a release; the message says how to get it."""


@dataclass(frozen=True)
class Release:
    """A version that may run somewhere."""

    version: str
    commit: str

    def migrations(self) -> set[tuple[str, str]]:
        """The app and the name of each migration of ours in this release."""
        listed = _git("ls-tree", "-r", "--name-only", self.commit, "backoffice").splitlines()
        found = [Path(path) for path in listed if "/migrations/" in path and path.endswith(".py")]
        return {(path.parts[1], path.stem) for path in found if not path.stem.startswith("_")}

    def text_of(self, path: str) -> str:
        """The text of one of its files; empty if it has none of that name."""
        return _git("show", f"{self.commit}:{path}")

    def extract(self, folder: Path) -> None:
        """Write its files into this folder."""
        file = folder / "release.zip"
        _git("archive", "--format=zip", f"--output={file}", self.commit)
        shutil.unpack_archive(file, folder)
        file.unlink()


def last_release() -> Release:
    """The newest one, by its tag if git has it, otherwise by the recorded commit. Raises ReleaseUnknownError."""
    version, commit = list(recorded_releases().items())[-1]
    tag = f"v{version}"
    commit = tag if _git("tag", "--list", tag).strip() else commit
    if not _git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"):
        raise ReleaseUnknownError(f"Git lacks {commit}, release {version}: git fetch --unshallow --tags")
    return Release(version, commit)


def recorded_releases() -> dict[str, str]:
    """The commit of each release by its version, oldest first."""
    found: dict[str, str] = tomllib.loads((ROOT / "releases.toml").read_text())["releases"]
    return found


def _git(*arguments: str) -> str:
    return run_python(*arguments, own={}, program=shutil.which("git") or "git").stdout
