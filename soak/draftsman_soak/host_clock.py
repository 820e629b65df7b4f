"""Wall clock of the host as a worker sees it, stepped as by NTP or after a suspend.

The kernel derives the boot time in /proc/stat from the wall clock, so a step of the clock moves it.
The worker gets a mount namespace with a /proc/stat of the soak test.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STAT: Final = Path("/proc/stat")
BOOT_TIME: Final = re.compile(r"^btime (\d+)$", re.MULTILINE)
MOUNT: Final = 'mount --bind "$0" /proc/stat && exec "$@"'


@dataclass(slots=True)
class HostClock:
    """A copy of /proc/stat whose boot time is `offset` seconds later."""

    file: Path
    offset: int = 0

    def wrapper(self) -> tuple[str, ...]:
        """Return the command that runs its arguments with this clock."""
        if not self.file.exists():
            self.step(0)
        return ("unshare", "--mount", "sh", "-c", MOUNT, str(self.file))

    def step(self, seconds: int) -> None:
        """Step the clock; the file keeps its inode, which is mounted."""
        self.offset += seconds
        text = BOOT_TIME.sub(lambda match: f"btime {int(match[1]) + self.offset}", STAT.read_text())
        self.file.write_text(text)


def lacks_mount_namespace(folder: Path) -> str | None:
    """Return why this machine cannot give a worker its own /proc/stat, or None if it can."""
    clock = HostClock(folder / "proc_stat")
    try:
        command = [*clock.wrapper(), "true"]
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        return error.strerror or type(error).__name__
    if result.returncode == 0:
        return None
    lines = result.stderr.strip().splitlines() or [f"exit code {result.returncode}"]
    return lines[0].removeprefix("unshare: ").removeprefix("unshare failed: ")
