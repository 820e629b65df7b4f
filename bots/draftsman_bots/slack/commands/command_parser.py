"""Parser of text commands, without the slash command or the mention. Pure, and raises nothing.

    fix [options] TEXT            make the change that TEXT requests
    investigate [options] TEXT    look, and change nothing
    tell JOB TEXT · pause JOB REASON · resume JOB
    status [JOB] · list · show JOB · cancel JOB [REASON] · retry JOB [--again]
    answer QUESTION TEXT · approve QUESTION [REASON] · deny QUESTION [REASON] · link · help
    ack QUESTION [1h] · snooze QUESTION [2h] · delegate QUESTION [to] PERSON [1h]
    every weekday at 9 TEXT       a schedule: see draftsman.schedules.phrases
    schedules [TEXT] · templates [TEXT] · template NAME [PARAMETER=VALUE …], also as run NAME …

Options precede or follow the text, as `--repo=NAME`, `--agent=NAME`, `--ref=BRANCH` or
`--mode=fix|investigate`; before it also with a space for the `=`. Quoted text is never an option,
and `--` ends the options. The first word may begin with a slash.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from draftsman.errors import UsageError
from draftsman.schedules.phrases import FIRST_WORDS, Phrase, read_phrase

REQUESTS: Final = ("fix", "investigate")
MODES: Final = REQUESTS
OPTIONS: Final = ("repo", "agent", "ref", "mode")
VERBS: Final = (
    "status",
    "list",
    "show",
    "tell",
    "pause",
    "resume",
    "cancel",
    "retry",
    "answer",
    "approve",
    "deny",
    "ack",
    "snooze",
    "delegate",
    "schedules",
    "templates",
    "template",
    "run",
    "link",
    "web",
    "help",
)
_TAKES_REFERENCE: Final = frozenset(
    {"status", "show", "tell", "pause", "resume", "cancel", "retry", "answer", "approve", "deny"}
    | {"ack", "snooze", "delegate"}
)
"""Verbs whose first word names a job or a question."""
_REFERENCE: Final = re.compile(
    r"(?:[dD]-[0-9]+|[0-9]+|[0-9a-fA-F]{8}[0-9a-fA-F-]{0,28})(?:/[0-9]+)?"
)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_PAIRS: Final = {'"': '"', "'": "'", "“": "”", "‘": "’"}  # noqa: RUF001
_OPTION: Final = re.compile(r"(?:--|—|–)([A-Za-z]+)(?:=|(?=\s)|$)")  # noqa: RUF001
_TRAILING_OPTION: Final = re.compile(
    r"(?:^|\s)(?:--|—|–)([A-Za-z]+)=(\"[^\"]*\"|“[^”]*”|[^\s\"“”]+)\s*$"  # noqa: RUF001
)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request for a job."""

    text: str
    mode: str
    options: dict[str, str] = field(default_factory=dict)
    """`repo`, `agent` and `ref`, if they are set."""


@dataclass(frozen=True, slots=True)
class TextCommand:
    """Any other command; `ref` is the job or question as typed, or ""."""

    verb: str
    ref: str = ""
    argument: str = ""
    """The text after the verb and `ref`."""


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """A request for a schedule: its rule, and the text of the request that it submits."""

    phrase: Phrase
    text: str


@dataclass(frozen=True, slots=True)
class InvalidText:
    """Text without a verb, with `reason` "", or with an invalid option, which `reason` explains."""

    text: str
    reason: str = ""


Parsed = JobRequest | ScheduleRequest | TextCommand | InvalidText


def parse(text: str) -> Parsed:
    """Parse the text; empty text is `help`."""
    text = text.strip()
    word, argument = _first_word(text)
    verb = word.lower()
    if not text:
        return TextCommand("help")
    if verb.startswith("/") and verb[1:] in {*REQUESTS, *VERBS, *FIRST_WORDS}:
        return parse(text[1:])  # as in comments of Trello and forges
    if verb in REQUESTS:
        return _request(verb, argument)
    if verb in FIRST_WORDS:
        try:
            return ScheduleRequest(*read_phrase(text))
        except UsageError as error:
            return InvalidText(text, str(error))
    if verb not in VERBS:
        return InvalidText(text)
    if verb not in _TAKES_REFERENCE:
        return TextCommand(verb, argument=argument)
    ref, argument_after_ref = _first_word(argument)
    if _REFERENCE.fullmatch(ref):
        return TextCommand(verb, ref, argument_after_ref)
    return TextCommand(verb, argument=argument)


def parse_request(text: str) -> JobRequest | InvalidText:
    """Parse the request of a schedule, whose mode is `fix` unless the text begins with it."""
    word, request_text = _first_word(text.strip())
    if (verb := word.lower().removeprefix("/")) in REQUESTS:
        return _request(verb, request_text)
    parsed = parse(text)
    is_command = isinstance(parsed, TextCommand) and (parsed.ref or not parsed.argument)
    if text.strip() and (is_command or isinstance(parsed, ScheduleRequest)):
        return InvalidText(text, f"a schedule submits jobs; it cannot run the command {word[:40]}")
    return _request(REQUESTS[0], text.strip())


def assignments(text: str) -> tuple[str, dict[str, str]]:
    """Parse `NAME a=1 b="two words"`: the name, and the values; raises UsageError."""
    name, unparsed = _first_word(text)
    values: dict[str, str] = {}
    while unparsed:
        match = _ASSIGNMENT.match(unparsed)
        if match is None:
            word = _first_word(unparsed)[0][:40]
            raise UsageError(f"{word!r} is not a parameter: write NAME=VALUE, or NAME='A VALUE'")
        if match[1] in values:
            raise UsageError(f"{match[1][:40]} is set twice; set it once")
        unparsed = unparsed[match.end() :]
        is_empty = not unparsed[:1].strip()
        values[match[1]], unparsed = (
            ("", unparsed.lstrip()) if is_empty else _option_value(unparsed)
        )
    return name, values


def _request(mode: str, text: str) -> JobRequest | InvalidText:
    options: dict[str, str] = {}
    plain = text
    while match := _OPTION.match(plain):
        name = match[1].lower()
        plain = plain[match.end() :]
        is_empty = match[0].endswith("=") and not plain[:1].strip()
        value, plain = ("", plain) if is_empty else _option_value(plain)
        if reason := _option_error(name, value, options):
            return InvalidText(text, reason)
        options[name] = value
    if plain == "--" or plain.startswith(("-- ", "--\n")):
        plain = plain[2:].strip()
    else:
        while (match := _TRAILING_OPTION.search(plain)) and match[1].lower() in OPTIONS:
            name = match[1].lower()
            value = _unquoted(match[2])
            if reason := _option_error(name, value, options):
                return InvalidText(text, reason)
            options[name] = value
            plain = plain[: match.start()].rstrip()
    plain = _unquoted(plain)
    if not plain.strip():
        return InvalidText(text, f"the text is missing: {mode} TEXT")
    return JobRequest(plain, options.pop("mode", mode), options)


def _option_error(name: str, value: str, options: dict[str, str]) -> str:
    """Return the reason why an option is invalid, or ""."""
    if name not in OPTIONS:
        options_text = ", ".join(f"--{option}" for option in OPTIONS)
        return f"unknown option --{name[:40]}; options: {options_text}; put text with -- in quotes"
    if not value:
        return f"--{name} needs a value: --{name}=VALUE"
    if name in options:
        return f"--{name} is set twice; set it once"
    if name == "mode" and value not in MODES:
        return f"--mode must be {' or '.join(MODES)}, not {value[:40]!r}"
    return ""


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word and the text after it."""
    words = text.split(None, 1)
    return (words[0] if words else "", words[1].strip() if len(words) > 1 else "")


def _option_value(text: str) -> tuple[str, str]:
    """Return the value of an option, quoted or not, and the text after it."""
    text = text.lstrip()
    closing = _PAIRS.get(text[:1])
    if closing is not None and (end := text.find(closing, 1)) > 0:
        return text[1:end].strip(), text[end + 1 :].lstrip()
    return _first_word(text)


def _unquoted(text: str) -> str:
    """Return the text without quotes around the whole of it."""
    closing = _PAIRS.get(text[:1])
    if closing is not None and len(text) > 1 and text.find(closing, 1) == len(text) - 1:
        return text[1:-1]
    return text
