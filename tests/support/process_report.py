"""Prints the inherited state of its process, as JSON, or ends as `--end` requires.

With `--start up`, a child process does that: `up` is a command that starts others.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

MODULE = "tests.support.process_report"
INHERITED = ("PYTHONPATH", "A", "TZ")


def main() -> None:
    """Print the report."""
    if sys.argv[1:2] == ["--end"]:
        end(sys.argv[2])
        return
    if sys.argv[1:3] == ["--start", "up"]:
        sys.exit(subprocess.run([sys.executable, "-m", MODULE, *sys.argv[3:]]).returncode)
    streams: tuple[Any, ...] = (sys.stdin, sys.stdout, sys.stderr)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    signals = [number for number in signal.Signals if signal.getsignal(number) is signal.SIG_IGN]
    print(  # noqa: T201
        json.dumps(
            {
                "interpreter": sys.orig_argv,
                "arguments": sys.argv[1:],
                "directory": os.getcwd(),  # noqa: PTH109
                "environment": {name: os.environ.get(name) for name in INHERITED},
                "path": sys.path,
                "zone": time.tzname,
                "temporary": tempfile.gettempdir(),
                "leads session": os.getsid(0) == os.getpid(),
                "input": None if sys.stdin.isatty() else sys.stdin.read(),
                "streams": [
                    [stream.encoding, stream.errors, stream.line_buffering, stream.write_through]
                    for stream in streams
                ],
                "blocked": sorted(map(int, blocked)),
                "pending": sorted(map(int, signal.sigpending())),
                "ignored": sorted(
                    n.name for n in signals if n.name != "SIGPIPE" and n.name != "SIGXFSZ"
                ),
                "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
            }
        )
    )


def end(how: str) -> None:
    """End the process as required."""
    match how:
        case "exit 3":
            sys.exit(3)
        case "text":
            sys.exit("a message")
        case "error":
            raise LookupError(how)
        case "SIGINT":
            signal.raise_signal(signal.SIGINT)
        case "wait":
            signal.pause()


if __name__ == "__main__":
    main()
