"""Sandboxes of runs."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from draftsman.settings.section import Section, UserPath


class SandboxSettings(Section):
    """Sandbox of agents, commands of profiles, and tools."""

    mode: Literal["auto", "bwrap", "landlock", "user", "container", "off"] = "auto"
    """`auto`: bwrap, else landlock; without both, runs do not start."""
    image: str | None = Field(None, min_length=1, pattern=r"^[^-\s]\S*$")
    """Image of the mode `container`, which is on this machine already."""
    engine: Literal["podman", "docker"] | None = None
    """Engine of the mode `container`; None: the first that is installed."""
    read_only: tuple[UserPath, ...] = ()
    """Additional readable files and directories."""
    memory_mb: int = Field(8192, ge=64, le=1 << 22)
    """Memory of all processes of a run, in megabytes."""
    processes: int = Field(1024, ge=8, le=1 << 20)
    """Processes and threads of a run."""
    file_size_mb: int = Field(4096, ge=1, le=1 << 22)
    """Size of a file, in megabytes."""
    first_uid: int = Field(200_000, ge=1000, le=4_000_000_000)
    """First user id of the range that a worker running as root uses for its runs."""
    uid_count: int = Field(1024, ge=1, le=100_000)
    """Size of the range of user ids."""

    @model_validator(mode="after")
    def _check_image(self) -> Self:
        if self.mode == "container" and self.image is None:
            raise ValueError('mode = "container" needs an image: set [sandbox] image')
        return self
