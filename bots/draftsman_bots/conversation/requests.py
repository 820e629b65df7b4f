"""Requests in text: their mode, options and parameters. Pure.

Options precede or follow the text, as `--repo=NAME`, `--agent=NAME`, `--ref=BRANCH` or
`--mode=fix|investigate`; before it also with a space for the `=`. Quoted text is never an option,
and `--` ends the options. Dashes and quotes may be those of any keyboard.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from draftsman.errors import UsageError
from draftsman.schedules.phrases import Phrase
from draftsman_bots.conversation.typography import DASHES, LONG_DASHES, QUOTES, stripped

MODES: Final = ("fix", "investigate")
OPTIONS: Final = ("repo", "agent", "ref", "mode")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_NAME: Final = (
    rf"(?:(?:-[{DASHES}]+|[{LONG_DASHES}][{DASHES}]*)(?P<name>[A-Za-z]+)"
    rf"|-(?P<known>{'|'.join(OPTIONS)}))"
)
"""An option after dashes; after a single plain one, which a text may have, only a known one."""
_OPTION: Final = re.compile(
    rf"{_NAME}(?:=|[^\S\n]+=[^\S\n]+(?=\S)|:[^\S\n]*(?=\S)|(?=\s)|$)", re.IGNORECASE
)
_QUOTED: Final = "|".join(
    f"{opening}[^{closings}]{{0,1000}}[{closings}]" for opening, closings in QUOTES.items()
)
_TRAILING_OPTION: Final = re.compile(
    rf"(?:^|\s){_NAME}=(?P<value>{_QUOTED}|[^\s\"“”„«»]+)\s*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a job."""

    text: str
    mode: str
    options: dict[str, str] = field(default_factory=dict)
    """`repo`, `agent` and `ref`, if they are set."""


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """A request for a schedule: its rule, and the text of the request that it submits."""

    phrase: Phrase
    text: str


def assignments(text: str) -> tuple[str, dict[str, str]]:
    """Parse `NAME a=1 b="two words"`: the name, and the values; raises UsageError."""
    name, unparsed = first_word(text)
    values: dict[str, str] = {}
    while unparsed:
        match = _ASSIGNMENT.match(unparsed)
        if match is None:
            word = first_word(unparsed)[0][:40]
            raise UsageError(f"{word!r} is not a parameter: write NAME=VALUE, or NAME='A VALUE'")
        if match[1] in values:
            raise UsageError(f"{match[1][:40]} is set twice; set it once")
        unparsed = unparsed[match.end() :]
        is_empty = not unparsed[:1].strip()
        values[match[1]], unparsed = (
            ("", unparsed.lstrip()) if is_empty else _option_value(unparsed)
        )
    return name, values


def read_request(mode: str, text: str) -> JobRequest:
    """Return the request of a text after its mode; raises UsageError."""
    options: dict[str, str] = {}
    plain = text
    while match := _OPTION.match(plain):
        name = _name(match)
        plain = plain[match.end() :]
        is_empty = match[0].endswith("=") and not plain[:1].strip()
        value, plain = ("", plain) if is_empty else _option_value(plain)
        _check_option(name, value, options)
        options[name] = value
    if plain == "--" or plain.startswith(("-- ", "--\n")):
        plain = plain[2:].strip()
    else:
        while (match := _TRAILING_OPTION.search(plain)) and _name(match) in OPTIONS:
            name = _name(match)
            value = _unquoted(match["value"])
            _check_option(name, value, options)
            options[name] = value
            plain = plain[: match.start()].rstrip()
    plain = _unquoted(plain)
    if not plain.strip():
        raise UsageError(f"the text is missing: {mode} TEXT")
    return JobRequest(plain, options.pop("mode", mode), options)


def _check_option(name: str, value: str, options: dict[str, str]) -> None:
    if name not in OPTIONS:
        known = ", ".join(f"--{option}" for option in OPTIONS)
        raise UsageError(
            f"unknown option --{name[:40]}; options: {known}; put text with -- in quotes"
        )
    if not value:
        raise UsageError(f"--{name} needs a value: --{name}=VALUE")
    if name in options:
        raise UsageError(f"--{name} is set twice; set it once")
    if name == "mode" and value not in MODES:
        raise UsageError(f"--mode must be {' or '.join(MODES)}, not {value[:40]!r}")


def first_word(text: str) -> tuple[str, str]:
    """Return the first word and the text after it."""
    words = text.split(None, 1)
    return (words[0] if words else "", words[1].strip() if len(words) > 1 else "")


def _option_value(text: str) -> tuple[str, str]:
    """Return the value of an option, quoted or not, and the text after it."""
    text = text.lstrip()
    if end := _closing(text):
        return text[1:end].strip(), text[end + 1 :].lstrip()
    value, text = first_word(text)
    return stripped(value), text


def _unquoted(text: str) -> str:
    """Return the text without quotes around the whole of it."""
    return text[1:-1].strip() if 0 < _closing(text) == len(text) - 1 else text


def _closing(text: str) -> int:
    """Return where the quote at the beginning of a text is closed; 0 without one."""
    closings = QUOTES.get(text[:1], "")
    return min((end for closing in closings if (end := text.find(closing, 1)) > 0), default=0)


def _name(match: re.Match[str]) -> str:
    return str(match["name"] or match["known"]).lower()
