"""A process that starts an embedded server, and is killed before or after one step of it.

python -m tests.core.database.killed_upgrade DATA_DIR MODULE FUNCTION before|after
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from draftsman.database.embedded import EmbeddedServer


def main(data_dir: str, module_name: str, name: str, when: str) -> None:
    """Replace the function, and start the server."""
    module = import_module(f"draftsman.database.embedded.{module_name}")
    real = getattr(module, name)

    def step(*args: Any, **options: Any) -> None:
        if when == "after":
            real(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, step)
    EmbeddedServer(Path(data_dir), 0).ensure()


if __name__ == "__main__":
    main(*sys.argv[1:])
