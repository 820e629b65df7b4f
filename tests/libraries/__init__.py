"""An environment with draftsman and the libraries of the examples, and a second type checker.

Its packages are those of `libraries.lock`, which Python 3.11 makes from `libraries.in`:

    pip-compile --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links \\
      --no-emit-trusted-host --no-emit-options --no-header \\
      -o tests/libraries/libraries.lock tests/libraries/libraries.in
"""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path
from typing import Final

import pytest

from tests.support.locked_environment import python_of

LOCK: Final = Path(__file__).with_name("libraries.lock")
ROOT: Final = LOCK.parents[2]
FOLDER: Final = ROOT / ".libraries"


def python_with_libraries() -> Path:
    """Return its interpreter, where draftsman is importable; skip the test if there is no network.

    The first call downloads 170 MB.
    """
    try:
        python = python_of(FOLDER, LOCK)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the libraries of {LOCK.name} cannot be installed: {error}")
    site = Path(sysconfig.get_path("purelib", vars={"base": str(FOLDER)}))
    (site / "draftsman.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    )
    return python
