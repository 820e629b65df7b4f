"""The tutorials, as a reader follows them: in an empty folder, with an embedded server.

tests/docs/test_tutorials.py runs what is quick of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.tutorials import NAMES, Shell, follow


@pytest.mark.parametrize("name", NAMES)
def test_every_command_does_what_the_page_says(name: str, folder: Path) -> None:
    (place := folder / "reader").mkdir()
    kinds = {
        f"XDG_{kind}_HOME": str(folder / kind) for kind in ("CACHE", "CONFIG", "DATA", "STATE")
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {"HOME": str(folder), "LANG": "C.UTF-8", "PATH": path, **kinds}
    shell = Shell(place, env)
    try:
        follow(name, shell)
    finally:
        shell.close()
        stop = [sys.executable, "-m", "draftsman_tui", "db", "stop", "--yes"]
        subprocess.run(stop, env=env, capture_output=True, check=False)
