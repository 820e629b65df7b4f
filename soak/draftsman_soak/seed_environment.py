"""Temporary environment of a seed: a folder, a configuration and a database server."""

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
from draftsman.database.embedded import EmbeddedServer
from draftsman.errors import Refused
from draftsman_soak.handlers import RARE, TYPES
from draftsman_soak.seed_config import configuration

PREFIX: Final = "draftsman-soak-"
TEMPORARY: Final = "tmp"
"""Folder for the workers' temporary files, which remain after a kill."""
KILL_TIMEOUT: Final = 10.0
"""Seconds to wait for killed processes."""


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Create a folder for seeds; remove it if no seed was kept."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    if os.geteuid() == 0:  # PostgreSQL runs as another user
        folder.chmod(0o755)
    try:
        yield folder
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


@contextlib.contextmanager
def without_user_config() -> Iterator[None]:
    """Unset `DRAFTSMAN_*` variables, which would override the configuration of the soak."""
    hidden = {name: os.environ[name] for name in list(os.environ) if name.startswith("DRAFTSMAN_")}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)


@dataclass(slots=True)
class SeedEnvironment:
    """Folder, configuration and server of a seed."""

    folder: Path
    git: bool
    settings: settings.Settings = field(init=False)
    server: EmbeddedServer = field(init=False)

    def __post_init__(self) -> None:
        # PostgreSQL does not run as root, and its user needs access
        self.folder.mkdir(mode=0o755 if os.geteuid() == 0 else 0o700)
        self.effects.mkdir()
        (self.folder / TEMPORARY).mkdir(mode=0o711)
        data = self.folder / "data"
        usual = [name for name in TYPES if name != RARE]
        self.config.write_text(configuration(data, git=self.git, types=usual))
        self.rare_config.write_text(configuration(data, git=self.git, types=TYPES))
        self.settings = settings.load(self.config)
        if self.settings.database_url is not None or self.folder not in self.data.parents:
            raise Refused(f"{self.config} does not configure a separate database for the soak")
        self.server = EmbeddedServer(self.data, self.settings.embedded.idle_timeout)

    @property
    def config(self) -> Path:
        """The configuration file of most workers."""
        return self.folder / "draftsman.toml"

    @property
    def rare_config(self) -> Path:
        """The configuration file of the worker that also handles the rare type."""
        return self.folder / "rare.toml"

    @property
    def data(self) -> Path:
        """The folder of the database and the clones."""
        return self.settings.data_dir

    @property
    def effects(self) -> Path:
        """The folder of the external effects."""
        return self.folder / "outside"

    def processes(self) -> list[psutil.Process]:
        """Return every process with a path of this folder in its command, or working in it."""
        return [
            process
            for process in psutil.process_iter()
            if process.pid != os.getpid() and self._owns(process)
        ]

    def close(self) -> None:
        """Kill every process of this environment, the server last."""
        owned = self.processes()
        for process in owned:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(owned, KILL_TIMEOUT)
        self.server.stop("immediate")

    def remove(self) -> None:
        """Remove all files, including server data outside the folder (see `embedded.layout`)."""
        status = self.server.status()
        for folder in (status.data_dir.parent, status.socket_dir, self.folder):
            shutil.rmtree(folder, ignore_errors=True)

    def _owns(self, process: psutil.Process) -> bool:
        mark = str(self.folder)
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if command and command[0].startswith("postgres"):
                return False
            return any(mark in word for word in command) or process.cwd().startswith(mark)
        return False
