"""Base of the tables of the configuration."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from draftsman.basic_settings import expand_user
from draftsman.errors import ConfigError


def _expanded(value: object) -> object:
    return expand_user(value) if isinstance(value, str) else value


UserPath = Annotated[Path, BeforeValidator(_expanded)]
"""A path in which `~` is the user's home."""


T = TypeVar("T")
Several = Annotated[
    tuple[T, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value or ()),
    AfterValidator(lambda value: tuple(dict.fromkeys(value))),
]
"""Values of which a single one may be written without a list."""


class Section(BaseModel):
    """A table of the file: immutable, without unknown keys."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @property
    def given(self) -> dict[str, Any]:
        """The keys that were given, with their values."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @classmethod
    def for_table(cls, table: Any) -> type[Section]:
        """Return the model of a table: that of its kind, if tables have kinds."""
        return cls


class PackageSection(Section):
    """What the package of a channel adds to `Settings`."""

    table: ClassVar[str]
    """Name of the table."""

    @classmethod
    @abstractmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the field in `Settings`."""


class ChannelSection(PackageSection):
    """The table of a channel."""

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the field: the table, or None."""
        return cls | None, None

    @classmethod
    def of(cls, settings: object) -> Self | None:
        """Return the table in the `Settings`; None without it."""
        section = getattr(settings, cls.table, None)
        return section if isinstance(section, cls) else None

    @classmethod
    def required(cls, settings: object) -> Self:
        """Return the table in the `Settings`; raises ConfigError without it."""
        section = cls.of(settings)
        if section is None:
            raise ConfigError(f"there is no table [{cls.table}] in the configuration")
        return section


class NamedSection(PackageSection):
    """One of the tables of a channel, such as `[queues.ops]`: its name is a target."""

    example: ClassVar[str]
    """Name of a table, for the documentation."""

    @classmethod
    def field(cls) -> tuple[Any, Any]:
        """Return the type and the default of the field: tables by name, or none."""
        return GenericAlias(dict, (str, cls)), Field({}, examples=[{cls.example: {}}])

    @classmethod
    def of(cls, settings: object) -> dict[str, Self]:
        """Return the tables in the `Settings` by name."""
        tables = getattr(settings, cls.table, None)
        items = tables.items() if isinstance(tables, dict) else ()
        return {name: table for name, table in items if isinstance(table, cls)}
