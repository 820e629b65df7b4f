"""The channel of `docs/examples/channel`, built and installed into a folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.distributions import forget

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = ROOT / "docs" / "examples" / "channel"
MODULES: Final = ("draftsman_httpchat", "chat_server")
NO_INDEX: Final = ("--no-index", "--no-deps", "--quiet", "--disable-pip-version-check")


def pip(*arguments: str | Path) -> None:
    """Run pip, without a package index."""
    command: Sequence[str | Path] = [sys.executable, "-m", "pip", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def build(folder: Path) -> Path:
    """Build the wheel of the plugin; return its path."""
    pip("wheel", *NO_INDEX, "--no-build-isolation", "--wheel-dir", folder, SOURCE)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path) -> None:
    """Install a wheel into a folder for `PYTHONPATH`."""
    pip("install", *NO_INDEX, "--no-compile", "--target", folder, wheel)


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Put the installed plugin and its tests on the path of this process."""
    paths = [str(folder), str(SOURCE / "tests")]
    sys.path[:0] = paths
    forget()
    try:
        yield
    finally:
        del sys.path[: len(paths)]
        for name in [name for name in sys.modules if name.partition(".")[0] in MODULES]:
            del sys.modules[name]
        forget()
