"""Validation and fix commands of repositories."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import Field

from draftsman.settings.section import Section

REPORT: Final = "{report}"
"""Part of a command's words that stands for a file outside of the clone, for a report of tests."""


def without_report(command: Iterable[str]) -> tuple[str, ...]:
    """Return a command as people and agents may run it: its report is dropped."""
    return tuple(word.replace(REPORT, os.devnull) for word in command)


ErrorExits = Annotated[tuple[Annotated[int, Field(ge=1, le=255)], ...], Field(max_length=50)]


class SetupSettings(Section):
    """A command of a profile that prepares a new clone."""

    name: str = Field(min_length=1)
    command: tuple[str, ...] = Field(min_length=1)
    timeout: float = Field(600, gt=0)
    error_exits: ErrorExits = ()
    """As those of validation commands; such an exit is not retried."""


class CommandSettings(Section):
    """A validation command of a profile."""

    name: str = Field(min_length=1)
    """Its name in reports."""
    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments; `{python}` is the interpreter that runs draftsman."""
    required: bool = True
    """Whether its failure fails the validation; otherwise it is reported."""
    timeout: float = Field(300, gt=0)
    """Seconds until it is killed."""
    report: Annotated[str, Field(max_length=1000)] = ""
    """Pattern of the reports that it writes in the profile's folder, such as
    `target/surefire-reports/*.xml`; '' if it has a word with `{report}`, or no report."""
    error_exits: ErrorExits = ()
    """Exit codes by which it says that it could not run, for example because its configuration is
    invalid; empty: those of programs that draftsman knows."""


class FixSettings(Section):
    """A fix command of a profile."""

    name: str = Field(min_length=1)
    """Its name in reports."""
    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments."""
    level: Literal["safe", "all"] = "safe"
    """`safe`: for both answers; `all`: only if the person chose all fixes."""
    timeout: float = Field(300, gt=0)
    """Seconds until it is killed."""
    error_exits: ErrorExits = ()
    """As those of validation commands."""


def _ruff_checks() -> tuple[CommandSettings, ...]:
    return (
        CommandSettings.model_construct(
            name="lint", command=("{python}", "-P", "-m", "ruff", "check", ".")
        ),
        CommandSettings.model_construct(
            name="format",
            command=("{python}", "-P", "-m", "ruff", "format", "--check", "."),
            required=False,
        ),
    )


def _ruff_fixes() -> tuple[FixSettings, ...]:
    fix = ("{python}", "-P", "-m", "ruff", "check", "--fix", "--exit-zero", ".")
    return (
        FixSettings.model_construct(name="lint", command=fix),
        FixSettings.model_construct(
            name="format", command=("{python}", "-P", "-m", "ruff", "format", ".")
        ),
        FixSettings.model_construct(
            name="unsafe", command=(*fix[:-1], "--unsafe-fixes", "."), level="all"
        ),
    )


class ProfileSettings(Section):
    """Validation and fix commands of a repository."""

    validation_commands: tuple[CommandSettings, ...] = Field(default_factory=_ruff_checks)
    """Commands that the work has to pass."""
    fix_commands: tuple[FixSettings, ...] = Field(default_factory=_ruff_fixes)
    """Commands that fix findings before validation."""
