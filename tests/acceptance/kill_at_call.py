"""Runs a command in this process, and kills it at a certain point.

python -m tests.acceptance.kill_at_call EVENT ENDING PYTHON -m MODULE ARGS…: SIGKILL at the first
audit event of that name whose first argument ends so, before the announced action.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys


def _main() -> None:
    event, ending, _, _, module, *args = sys.argv[1:]

    def hook(name: str, values: tuple[object, ...]) -> None:
        if name == event and str(values[0]).endswith(ending):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.argv = [module, *args]
    sys.addaudithook(hook)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
