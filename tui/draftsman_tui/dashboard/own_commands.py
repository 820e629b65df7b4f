"""Commands of `[dashboard.commands]`: programs that a key runs with values of the selected job."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.app import SuspendNotSupported

from draftsman.errors import ConfigError, Refused
from draftsman_tui.common.job_pages import pages_of
from draftsman_tui.dashboard.command import CommandGroup, CommandSet, DashboardCommand

if TYPE_CHECKING:
    from draftsman.settings.dashboard import OwnCommandSettings
    from draftsman_tui.dashboard.frame.base_screen import BaseScreen

PLACEHOLDERS: Final = ("job", "number", "title", "repo", "url")
INTERPRETERS: Final = frozenset(
    ["bash", "dash", "fish", "ksh", "node", "perl", "python", "python3", "ruby", "sh", "zsh"]
)
"""Programs that run a text which follows an option such as -c."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_TAKES_CODE: Final = re.compile(r"-\w*[ce]|--eval")


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """A command line as words; each placeholder is a part of a word, never of a shell's text."""

    words: Sequence[str]
    background: bool = False

    def arguments(self, values: Mapping[str, str]) -> list[str]:
        """Return the words with their values; raises Refused if a value would be an option."""
        arguments = [_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in self.words]
        options = self.words.index("--") if "--" in self.words else len(self.words)
        for word, argument in zip(self.words[:options], arguments, strict=False):
            if argument.startswith("-") and word.startswith("{"):
                raise Refused(
                    f"{word} is {argument!r} here, which would be an option; put -- first"
                )
        return arguments

    @property
    def placeholders(self) -> set[str]:
        """Names of the values that it needs."""
        return {name for word in self.words for name in _PLACEHOLDER.findall(word)}

    async def run(self, screen: BaseScreen, text: str) -> None:
        """Run it with the screen suspended, or in the background, and tell a failure."""
        arguments = self.arguments(await values_of(screen, self.placeholders))
        try:
            if self.background:
                code = await _in_background(arguments)
            else:
                code = _in_terminal(screen, arguments)
        except SuspendNotSupported:
            raise Refused("this terminal cannot be left; set background = true") from None
        except OSError as error:
            raise Refused(f"{arguments[0]}: {error.strerror}") from None
        line = shlex.join(arguments)
        if code:
            raise Refused(f"{line} ended with exit code {code}")
        if self.background:
            screen.show_message(f"{line} has ended, exit code 0")


def _in_terminal(screen: BaseScreen, arguments: Sequence[str]) -> int:
    """Run a program in the terminal of the dashboard, which waits for its end."""
    with screen.app.suspend():
        return subprocess.run(arguments, check=False).returncode


async def _in_background(arguments: Sequence[str]) -> int:
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *arguments, stdin=nothing, stdout=nothing, stderr=nothing
    )
    return await process.wait()


async def values_of(screen: BaseScreen, names: set[str]) -> dict[str, str]:
    """Return the values of the selected job; raises Refused if it has none of a name."""
    if not names:
        return {}
    number = screen.job()
    job = await screen.rt.read_model.job(number)
    values: dict[str, str | None] = {
        "job": job.name,
        "number": str(number),
        "title": job.title,
        "repo": None if job.request is None else job.request.repo,
    }
    if "url" in names:
        values["url"] = next((url for _, url in await pages_of(screen.rt, number)), None)
    if missing := sorted(name for name in names if not values[name]):
        raise Refused(f"{job.name} has no {missing[0]}")
    return {name: values[name] or "" for name in names}


def own_commands(
    settings: Mapping[str, OwnCommandSettings], commands: CommandSet
) -> list[DashboardCommand]:
    """Return the commands of a configuration; raises ConfigError."""
    return [_command(name, setting, commands) for name, setting in settings.items()]


def _command(name: str, setting: OwnCommandSettings, commands: CommandSet) -> DashboardCommand:
    if _NAME.fullmatch(name) is None:
        raise _wrong(name, "use 1 to 40 of a-z, 0-9, - and _ as its name")
    if name in commands:
        raise _wrong(name, "is a command of the dashboard; choose another name")
    try:
        words = shlex.split(setting.run)
    except ValueError as error:
        raise _wrong(name, f"{setting.run!r} cannot be read: {error}") from None
    if not words:
        raise _wrong(name, "run is empty; give the program and its arguments")
    own = OwnCommand(words, setting.background)
    if unknown := sorted(own.placeholders - {*PLACEHOLDERS}):
        allowed = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
        raise _wrong(name, f"unknown placeholder {{{unknown[0]}}}; allowed: {allowed}")
    if _PLACEHOLDER.search(words[0]):
        raise _wrong(name, "a placeholder cannot be the program")
    is_code = False
    for word in words:
        if is_code and _PLACEHOLDER.search(word):
            hint = "pass it behind: sh -c 'echo \"$1\"' sh {title}"
            raise _wrong(name, f"a placeholder in the text of a shell would run a title; {hint}")
        is_code = _TAKES_CODE.fullmatch(word) is not None and any(
            Path(other).name in INTERPRETERS for other in words
        )
    return DashboardCommand(
        name=name,
        help=f"Run {setting.run}",
        run=own.run,
        group=CommandGroup.OWN,
        keys="",
        writes=True,
        footer=True,
    )


def _wrong(name: str, why: str) -> ConfigError:
    return ConfigError(f"[dashboard.commands] {name}: {why}")
