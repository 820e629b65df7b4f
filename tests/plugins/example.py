"""The packages of `docs/examples`, built and installed into a folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.distributions import forget

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "docs" / "examples"
SOURCE: Final = EXAMPLES / "channel"
JOB_TYPES: Final = EXAMPLES / "job_types"
OFFLINE: Final = (
    *("--quiet", "--disable-pip-version-check", "--no-compile"),
    *("--no-index", "--no-deps", "--no-build-isolation"),
)
"""Options of pip that need no package index."""
MODULES: Final = ("draftsman_greetings", "draftsman_httpchat", "chat_server")


def install(folder: Path, source: Path = SOURCE) -> None:
    """Build the wheel of a package, and install it into a folder for `PYTHONPATH`."""
    command: list[str | Path] = [sys.executable, "-m", "pip", "install", *OFFLINE]
    command += ["--target", folder, source]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


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
