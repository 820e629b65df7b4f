"""The throw-away place of one seed: a folder, a configuration, a server; nothing of the user's."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from draftsman import settings
from draftsman.embedded import EmbeddedServer
from draftsman.errors import Refused
from draftsman_soak.seed_config import configuration

PREFIX: Final = "draftsman-soak-"
TEMPORARY: Final = "tmp"
"""Folder for the temporary files of workers, which leave some when they are killed."""
KILL_TIMEOUT: Final = 10.0
"""Seconds that killed processes get to go."""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder for seeds; remove it unless one of them was kept in it."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    if os.geteuid() == 0:  # PostgreSQL runs as another user then
        folder.chmod(0o755)
    try:
        yield folder
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


@contextlib.contextmanager
def without_user_config() -> Iterator[None]:
    """Hide the user's configuration: a `DRAFTSMAN_*` variable would win over the file of a soak."""
    hidden = {name: os.environ[name] for name in list(os.environ) if name.startswith("DRAFTSMAN_")}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


@dataclass(slots=True)
class SeedEnvironment:
    """A folder with everything that belongs to one seed."""

    folder: Path
    git: bool
    settings: settings.Settings = field(init=False)
    server: EmbeddedServer = field(init=False)

    def __post_init__(self) -> None:
        # PostgreSQL does not run as root: its user has to get in
        self.folder.mkdir(mode=0o755 if os.geteuid() == 0 else 0o700)
        self.effects.mkdir()
        (self.folder / TEMPORARY).mkdir(mode=0o711)
        self.config.write_text(configuration(self.folder / "data", git=self.git))
        self.settings = settings.load(self.config)
        if self.settings.database_url is not None or self.folder not in self.data.parents:
            raise Refused(f"{self.config} does not name a database of the soak's own")
        self.server = EmbeddedServer(self.data, self.settings.embedded.idle_stop)

    @property
    def config(self) -> Path:
        """The file that every process reads."""
        return self.folder / "draftsman.toml"

    @property
    def data(self) -> Path:
        """Where the database and the clones are."""
        return self.settings.data_dir

    @property
    def effects(self) -> Path:
        """The world outside."""
        return self.folder / "outside"

    def processes(self) -> list[psutil.Process]:
        """Return every process that was started with a file of this place, or works in it."""
        return [one for one in psutil.process_iter() if one.pid != os.getpid() and self._ours(one)]

    def close(self) -> None:
        """End every process of this place, the server last."""
        ours = self.processes()
        for process in ours:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(ours, KILL_TIMEOUT)
        self.server.stop("immediate")

    def remove(self) -> None:
        """Remove it all, where the server's data lies elsewhere (see `embedded.place`) that too."""
        found = self.server.status()
        for folder in (found.data_dir.parent, found.socket_dir, self.folder):
            shutil.rmtree(folder, ignore_errors=True)

    def _ours(self, process: psutil.Process) -> bool:
        mark = str(self.folder)
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if command and command[0].startswith("postgres"):
                return False
            return any(mark in word for word in command) or process.cwd().startswith(mark)
        return False
