"""Base of the tables of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict

from draftsman.basic_settings import expand_user


def _expanded(value: object) -> object:
    return expand_user(value) if isinstance(value, str) else value


UserPath = Annotated[Path, BeforeValidator(_expanded)]
"""A path in which `~` is the user's home."""


class Section(BaseModel):
    """A table of the file: immutable, without unknown keys."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def for_table(cls, table: Any) -> type[Section]:
        """Return the model of a table: that of its kind, if tables have kinds."""
        return cls


class ChannelSection(Section):
    """The table of a channel, which its package adds to `Settings`."""

    table: ClassVar[str]
    """Name of the table."""

    @classmethod
    def of(cls, settings: object) -> Self | None:
        """Return the table in the `Settings`; None without it."""
        section = getattr(settings, cls.table, None)
        return section if isinstance(section, cls) else None
