"""Sandboxes of runs."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from draftsman.settings.section import Section, UserPath


class SandboxSettings(Section):
    """Confinement of agents, commands of profiles and tools (docs/sandbox.md)."""

    mode: Literal["auto", "bwrap", "landlock", "user", "container", "off"] = "auto"
    """auto, bwrap, landlock, user, container or off. auto: bwrap, else landlock; without both no
    run starts."""
    image: str | None = Field(
        None, min_length=1, pattern=r"^[^-\s]\S*$", examples=["registry.example/agents:7"]
    )
    """Image of the mode container, which has to be on this machine already. Unset: none."""
    engine: Literal["podman", "docker"] | None = Field(None, examples=["podman"])
    """Engine of the mode container: podman or docker. Unset: podman, else docker."""
    read_only: tuple[UserPath, ...] = ()
    """Additional files and folders that the programs may read, such as "/opt/agents"."""
    memory_mb: int = Field(8192, ge=64, le=1 << 22)
    """Memory of all processes of a run together, in megabytes."""
    processes: int = Field(1024, ge=8, le=1 << 20)
    """Processes and threads of a run."""
    file_size_mb: int = Field(4096, ge=1, le=1 << 22)
    """Maximum size of a file, in megabytes."""
    first_uid: int = Field(200_000, ge=1000, le=4_000_000_000)
    """First user id of the range from which a worker that runs as root takes an id for each run."""
    uid_count: int = Field(1024, ge=1, le=100_000)
    """Length of that range."""

    @model_validator(mode="after")
    def _check_image(self) -> Self:
        if self.mode == "container" and self.image is None:
            raise ValueError('mode = "container" needs an image: set [sandbox] image')
        return self
