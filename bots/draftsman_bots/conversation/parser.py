"""Parser of what people write in chats: commands, decisions, answers and requests. Pure.

The first line that is neither quoted nor code decides: `2`, `approve`, `deny because`, `@draftsman
yes`, `/answer D-7/1 yes`, `/tell D-7 use the v2 API`, `/draftsman pause D-7 REASON`. A text without
a mention or command may be a conversation among people; the open questions decide whether it is an
answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from draftsman.errors import UsageError
from draftsman.questions.question import Decision
from draftsman.schedules.phrases import read_phrase
from draftsman_bots.conversation.answers import (
    VERBS,
    ApprovalDecision,
    parse_decision,
    reason_of,
    verb_of,
)
from draftsman_bots.conversation.commands import COMMANDS, About, Command, Surface
from draftsman_bots.conversation.requests import MODES, JobRequest, ScheduleRequest, read_request
from draftsman_bots.conversation.typography import plain, stripped, without_signature

ATTENTION: Final = ("ack", "snooze", "delegate")
"""Commands on the notifications of a question."""
_FENCE: Final = re.compile(r" {0,3}(```+(?=[^`]*$)|~~~+)")
_INDENTED: Final = re.compile(r"(?: {4}|\t)")
_MENTION: Final = re.compile(r"@([A-Za-z0-9_]{1,100}(?:-[A-Za-z0-9_]{1,100}){0,5})\b[,:]?\s*")
_CALL: Final = re.compile(r"/draftsman(?![\w-])[,:]?\s*", re.IGNORECASE)
_TWO_WORDS: Final = "|".join(name.replace("-", "[ -]") for name in COMMANDS if "-" in name)
_WORD: Final = re.compile(
    rf"(/ ?|)({_TWO_WORDS}|[A-Za-z]{{2,20}})(?:[,:;.!]?(?=\s|$))(\s*)", re.IGNORECASE
)
_NAME: Final = re.compile(
    r"[dD]-(?P<job>[1-9][0-9]{0,17})(?:/(?P<question>[1-9][0-9]{0,8}))?[,:;.!]?(?:\s+|$)"
)
_SHORT_NAME: Final = re.compile(
    r"(?:[dD]-[0-9]{1,18}|[0-9]{1,18}|[0-9a-fA-F]{8}[0-9a-fA-F-]{0,28})(?:/[0-9]{1,9})?(?:\s+|$)"
)
_NUMBERS: Final = re.compile(r"(?:[dD]-)?([1-9][0-9]{0,17})(?:/([1-9][0-9]{0,8}))?")
_UNKNOWN: Final = re.compile(r"/([A-Za-z][A-Za-z-]{1,30})(?=\s|$)")
_PICTURE: Final = re.compile(
    r"!?\[[^\[\]]{0,1000}\]\([^()\s]{0,2000}(?:\s{1,10}\"[^\"]{0,1000}\")?\)"
)
"""Bounded: a hostile comment must not cost quadratic time."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between channels, each for the reason that it has here."""

    surface: Surface
    words_command: bool = False
    """Whether an addressed word is a command with any text after it.

    In Slack, a request begins with `fix`. A comment that is addressed is a request or a message,
    which may begin with any word: `@draftsman cancel the second refund`.
    """
    short_names: bool = False
    """Whether `142` names a job: where comments are, it is rather a reason or an answer."""
    approval_reasons: bool = False
    """Whether `approve D-142/1 TEXT` approves: in a comment, the text may be a condition."""
    indented_code: bool = True
    """Whether four spaces begin code: Slack has no such code, and commands after a space."""


SLACK: Final = Dialect(
    Surface.SLACK,
    words_command=True,
    short_names=True,
    approval_reasons=True,
    indented_code=False,
)
REPLY: Final = Dialect(Surface.REPLY)
FORGE: Final = Dialect(Surface.FORGE)


@dataclass(frozen=True, slots=True)
class ParsedText:
    """Content of a text.

    `line` is the deciding line, and `text` that line and all unquoted lines after it, both without
    the command and the name that they begin with.
    """

    line: str = ""
    text: str = ""
    addressed: bool = False
    """Whether it mentions the bot or begins with `/draftsman`."""
    verb: str = ""
    """The name or alias of the command."""
    ref: str = ""
    """The job or question that it names, as typed."""
    job: int | None = None
    question: int | None = None
    decision: ApprovalDecision | None = None
    request: JobRequest | ScheduleRequest | None = None
    problem: str = ""
    """The reason why its request is invalid."""
    doubtful: bool = False
    """Whether the command is a text where a question accepts it: `@draftsman list`."""
    literal: str = ""
    """The text with its command, for an answer that begins like one."""
    unknown: str = ""
    """The first word of a text that looks like a command, without the slash: `paus`."""

    @property
    def answer(self) -> str:
        """The text as an answer."""
        return self.literal if self.doubtful else self.text

    @property
    def answer_line(self) -> str:
        """The deciding line as an answer."""
        return _first_line(self.answer)

    @property
    def explicit(self) -> bool:
        """Whether the text is for the bot: it is addressed, or has a command."""
        return self.addressed or bool(self.verb)

    @property
    def command(self) -> Command | None:
        """The declaration of the command."""
        return COMMANDS.get(self.verb)


def parse(
    text: str, dialect: Dialect, *, name: str = "", addressed: bool = False
) -> ParsedText | None:
    """Parse a text; return None if it is not for the bot.

    `name` is the username in mentions, "" in a channel that removes mentions, where `addressed`
    says whether there was one. An addressed text that is empty is None, too.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    unquoted = list(_unquoted_lines(lines, dialect))
    if not unquoted:
        return None
    first = stripped(unquoted[0][1])
    if name and (match := _match(_MENTION, first)):
        if match[1].casefold() != name.casefold():
            return None  # it mentions another member
        first = first[match.end() :]
        addressed = True
    elif addressed:
        first = first.lstrip(",: ")
    called = _match(_CALL, first)
    if called:
        first = first[called.end() :]
        addressed = True
    literal = _join(without_signature([first, *(line for _, line in unquoted[1:])]))
    whole = "\n".join([first, *lines[unquoted[0][0] + 1 :]]).strip()
    if not literal:
        return ParsedText(addressed=True) if addressed else None
    parsed = _parse_command(literal, whole, dialect, addressed=addressed, called=bool(called))
    parsed = replace(parsed, addressed=addressed)
    if parsed.literal:
        return parsed
    decided = parsed.decision or parse_decision(parsed.text)
    unknown = _match(_UNKNOWN, literal)
    return replace(parsed, decision=decided, literal=literal, unknown=unknown[1] if unknown else "")


def parse_slack(text: str, *, addressed: bool = True) -> ParsedText:
    """Parse a text of Slack, of which any may be for the bot; an empty mention is `help`."""
    parsed = parse(text, SLACK, addressed=addressed)
    if parsed is not None and parsed.literal:
        return parsed
    text = text.strip()
    if addressed and (not text or parsed is not None):
        return ParsedText(verb="help", addressed=True)
    return ParsedText(_first_line(text), text, addressed=addressed, literal=text)


def parse_scheduled(text: str) -> JobRequest:
    """Parse the request of a schedule, whose mode is `fix` unless the text begins with it.

    Raises UsageError.
    """
    parsed = parse_slack(text)
    if parsed.problem:
        raise UsageError(parsed.problem)
    if isinstance(parsed.request, JobRequest):
        return parsed.request
    if parsed.request or (parsed.verb and (parsed.ref or not parsed.text)):
        word = text.split(None, 1)[0][:40]
        raise UsageError(f"a schedule submits jobs; it cannot run the command {word}")
    return read_request(MODES[0], text.strip())


def is_attachment_only(text: str) -> bool:
    """Return whether a text consists only of images and links to files."""
    return bool(text.strip()) and not _PICTURE.sub("", text).strip()


def _parse_command(
    literal: str, whole: str, dialect: Dialect, *, addressed: bool, called: bool
) -> ParsedText:
    """Parse the command; without one, the text has no `literal`.

    A request and a message to the agent are taken whole, with the quotes in them.
    """
    match = _match(_WORD, literal)
    command = COMMANDS.get(verb_of(match[2])) if match else None
    if match is None or command is None or not _is_known(command, match, dialect):
        return _named(literal, addressed=addressed)
    is_request = command.about is About.REQUEST
    if is_request or command.name == "tell":
        match = _match(_WORD, whole) or match
        rest = whole[match.end() :]
    else:
        rest = literal[match.end() :]
    slash = bool(match[1])
    is_named = command.about in (About.JOB, About.QUESTION) and bool(_match(_NAME, rest))
    is_alone = not rest or "\n" in match[3]
    is_sure = slash or (is_named and (addressed or command.name in VERBS))
    is_said = addressed and (
        dialect.words_command or is_request or is_alone or (called and command.name == "tell")
    )
    if not (is_sure or is_said):
        return _named(literal, addressed=addressed)
    parsed = ParsedText(
        verb=verb_of(match[2]),
        addressed=addressed,
        doubtful=not (is_sure or (called and not is_request)),
        literal=literal,
    )
    if is_request:
        return _with_request(parsed, command, whole, rest.strip())
    return _with_arguments(parsed, command, rest, dialect)


def _is_known(command: Command, match: re.Match[str], dialect: Dialect) -> bool:
    """Return whether the word is a command here: a sentence may begin with `in` or `fix`."""
    if command.about is not About.REQUEST:
        return True
    if command.name not in MODES and not match[0].rstrip()[-1].isalpha():
        return False
    return dialect.surface in command.surfaces


def _named(literal: str, *, addressed: bool) -> ParsedText:
    """Return a text without a command, which may begin with the name of a job or question."""
    match = _match(_NAME, literal) if addressed else None
    if match is None:
        return ParsedText(_first_line(literal), literal)
    text = literal[match.end() :].strip()
    parsed = ParsedText(_first_line(text), text, decision=parse_decision(text), literal=literal)
    if match["question"]:
        parsed = replace(parsed, verb=parsed.decision.verb if parsed.decision else "answer")
    return _with_name(parsed, match[0])


def _with_request(parsed: ParsedText, command: Command, whole: str, text: str) -> ParsedText:
    parsed = replace(parsed, line=_first_line(text), text=text)
    try:
        if command.name in MODES:
            return replace(parsed, request=read_request(command.name, text))
        return replace(parsed, request=ScheduleRequest(*read_phrase(whole.removeprefix("/"))))
    except UsageError as error:
        return replace(parsed, problem=str(error))


def _with_arguments(
    parsed: ParsedText, command: Command, rest: str, dialect: Dialect
) -> ParsedText:
    """Return the command with its job or question, its text, and its decision."""
    match = None
    if command.about in (About.JOB, About.QUESTION):
        match = _match(_NAME, rest)
        if match is None and (dialect.short_names or _is_number(command, rest)):
            match = _match(_SHORT_NAME, rest)
            if match and command.about is About.QUESTION and "/" not in match[0]:
                match = None  # `answer 2` is a choice
    if match:
        parsed = _with_name(parsed, match[0])
    text = (rest[match.end() :] if match else rest).strip()
    if command.name in ATTENTION:
        text = _first_line(text)
    parsed = replace(parsed, line=_first_line(text), text=text)
    return replace(parsed, decision=_decision(parsed, command, dialect))


def _with_name(parsed: ParsedText, typed: str) -> ParsedText:
    """Return the text with the job or question that it names."""
    ref = typed.strip().rstrip(",:;.!")
    match = _NUMBERS.fullmatch(ref)
    job = int(match[1]) if match else None
    question = int(match[2]) if match and match[2] else None
    return replace(parsed, ref=ref, job=job, question=question)


def _is_number(command: Command, rest: str) -> bool:
    """Return whether the whole text after a command is a number, which is no reason."""
    return command.about is About.JOB and rest.strip().isdecimal()


def _decision(parsed: ParsedText, command: Command, dialect: Dialect) -> ApprovalDecision | None:
    if command.name == "answer":
        return parse_decision(parsed.text)
    decision = VERBS.get(command.name)
    reason = reason_of(parsed.text)
    is_sure = dialect.approval_reasons and parsed.addressed and bool(parsed.ref)
    if decision is None or (decision is Decision.APPROVE and reason and not is_sure):
        return None
    return ApprovalDecision(decision, reason)


def _first_line(text: str) -> str:
    return text.partition("\n")[0].strip()


def _join(lines: Sequence[str]) -> str:
    return stripped("\n".join(line.rstrip() for line in lines))


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Match in the plain text, whose positions are those of the text."""
    return pattern.match(plain(text))


def _unquoted_lines(lines: list[str], dialect: Dialect) -> Iterator[tuple[int, str]]:
    """Yield the lines from the first one that is neither quoted nor code, with their index.

    Quotes are left out after it, too: answers to mails end with them. Code is part of the text.
    """
    fence = ""
    started = False
    for index, line in enumerate(lines):
        match = _FENCE.match(line)
        is_fenced = bool(fence or match)
        if fence:
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif match:
            fence = match[1]
        if is_fenced:
            if started:
                yield index, line
            continue
        is_code = dialect.indented_code and not started and _INDENTED.match(line)
        if line.lstrip().startswith(">") or is_code:
            continue
        if line.strip() or started:
            started = True
            yield index, line
