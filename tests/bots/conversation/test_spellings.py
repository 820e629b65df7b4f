"""One table of spellings: a text means the same in each channel that it reaches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from draftsman_bots.conversation.answers import VERBS
from draftsman_bots.conversation.commands import COMMANDS, DECLARED, About, Command, Surface
from draftsman_bots.conversation.parser import FORGE, REPLY, SLACK, Dialect, ParsedText, parse
from draftsman_bots.slack.payloads.payloads import parse_message
from tests.bots.conversation.test_parser import meaning
from tests.support.cases import cases

ME: Final = "draftsman"
BOT: Final = "U0BOT"
ARGUMENTS: Final = {"ack": "2h", "snooze": "2h", "delegate": "to bob 2h", "approve": ""}
CALLS: Final = ("/draftsman ", "/draftsman: ", "@draftsman ", "@Draftsman, ", "")
DIFFERENCES: Final = {
    "words_command": "in Slack, an addressed word is a command with any text after it",
    "short_names": "in Slack, 142 is a job",
    "approval_reasons": "in Slack, approve NAME REASON approves",
    "indented_code": "four spaces are no code in Slack",
    "surface": "a card requests a job by its label, and schedules are made in Slack",
}


def in_slack(text: str) -> ParsedText | None:
    """Parse a text of a thread in Slack: a slash command where it begins with `/draftsman`."""
    if text.casefold().startswith("/draftsman"):
        typed = text[len("/draftsman") :].lstrip(":, ")
        return parse(typed, SLACK, addressed=True)
    text = re.sub("@draftsman", f"<@{BOT}>", text, count=1, flags=re.IGNORECASE)
    event = {"type": "message", "user": "U1", "channel": "C1", "ts": "1.1", "text": text}
    message = parse_message({"event": event, "team_id": "T1"}, BOT)
    assert message is not None
    return parse(message.text, SLACK, addressed=message.mentioned)


CHANNELS: Final[dict[str, Callable[[str], ParsedText | None]]] = {
    "Slack": in_slack,
    "Trello": lambda text: parse(text, REPLY, name=ME),
    "forges": lambda text: parse(text, FORGE, name=ME),
}


def spellings() -> Iterator[tuple[str, Command, str]]:
    """Yield each spelling of each command that names its job or question, with its call."""
    for name, command in COMMANDS.items():
        if command.about is About.REQUEST:
            continue
        ref = {About.JOB: "D-142", About.QUESTION: "D-142/1"}.get(command.about, "")
        argument = ARGUMENTS.get(name, "too slow") if ref else ""
        for call in CALLS:
            for slash in ("/", ""):
                if not (call or slash or name in VERBS):
                    continue
                for typed in (name, name.upper(), f"{name}:", name.replace("-", " ")):
                    words = " ".join(filter(None, [slash + typed, ref, argument]))
                    yield call + words, command, call
                yield f"> {words}\n\n{call}{words}\n> quoted", command, call


@cases("channel", CHANNELS)
def test_each_spelling_of_a_command_means_the_same_in_each_channel(channel: str) -> None:
    for text, command, call in spellings():
        if channel == "Slack" and text.startswith(">") and call.startswith("/"):
            continue  # a slash command begins its message
        parsed = CHANNELS[channel](text)
        assert parsed is not None, text
        assert parsed.command is command, text
        assert parsed.addressed is bool(call), text
        has_ref = command.about in (About.JOB, About.QUESTION)
        assert parsed.job == (142 if has_ref else None), text
        assert parsed.question == (1 if command.about is About.QUESTION else None), text
        argument = ARGUMENTS.get(command.name, "too slow") if has_ref else ""
        quoted = "\n> quoted" if command.name == "tell" and text.startswith(">") else ""
        assert parsed.text == argument + quoted, text
        is_decided = command.name in VERBS
        assert (parsed.decision is not None) is is_decided, text


@cases(
    "text",
    [
        "2",
        "red",
        "approve",
        "deny because",
        "approve it",
        "approve D-7/1",
        "deny D-7/1 no",
        "/paus",
        "@draftsman blue",
        "@draftsman D-7/1 blue",
        "@draftsman D-7/1 approve",
        "@draftsman approve",
        "@draftsman deny",
        "@draftsman /answer 2",
        "@draftsman resume",
        "/answer 2",
        "/tell use v2",
        "/draftsman tell use v2",
        "/draftsman: help",
        "> 1\n\nred\nor blue\n> 2",
        "look:\n```\ncode\n```",
    ],
)
def test_texts_of_a_thread_mean_the_same_in_each_channel(text: str) -> None:
    meanings = [meaning(parsed(text)) for parsed in CHANNELS.values()]
    assert meanings[0] == meanings[1] == meanings[2]


def test_each_difference_of_a_channel_has_a_reason() -> None:
    fields = Dialect.__slots__
    assert set(DIFFERENCES) == set(fields)
    assert replace(FORGE, surface=Surface.REPLY) == REPLY
    differing = {name for name in fields if getattr(SLACK, name) != getattr(REPLY, name)}
    assert differing == set(fields)


@cases(
    ("text", "verbs"),
    [
        ("@draftsman cancel the second refund", {"Slack": "cancel", "Trello": "", "forges": ""}),
        ("@draftsman fix it", {"Slack": "fix", "Trello": "", "forges": "fix"}),
        ("@draftsman every day at 9 it", {"Slack": "every", "Trello": "", "forges": ""}),
    ],
)
def test_a_mention_begins_a_command_in_slack_only(text: str, verbs: dict[str, str]) -> None:
    found = {name: getattr(parsed(text), "verb", None) for name, parsed in CHANNELS.items()}
    assert found == verbs


def test_help_has_a_line_for_each_command_of_a_channel_that_is_parsed_there() -> None:
    for surface, dialect in {"Slack": SLACK, "Trello": REPLY, "forges": FORGE}.items():
        for command in DECLARED:
            if dialect.surface not in command.surfaces:
                continue
            usage = command.usage(dialect.surface)
            typed = usage.replace("[", "").replace("]", "")
            parsed = CHANNELS[surface](typed)
            assert parsed is not None, usage
            assert parsed.command is command, usage
            assert not parsed.problem, (usage, parsed)


@cases(
    ("argument", "seconds"),
    [
        *((spelling, 3600.0) for spelling in ("", "1h", "1 h", "for 1 h", "1\N{NO-BREAK SPACE}h")),
        *((spelling, 5400.0) for spelling in ("1h30m", "1 h 30 min", "For 1 hr 30 mins", "90 MIN")),
    ],
)
def test_a_duration_has_blanks_or_none_in_each_channel(argument: str, seconds: float) -> None:
    for name, parse_text in CHANNELS.items():
        for text in ("ack D-142/1", "delegate D-142/1 bob", "delegate D-142/1 To  bob"):
            parsed = parse_text(f"/draftsman {text} {argument}")
            assert parsed is not None, name
            assert parsed.command is not None, name
            assert parsed.command.action is not None, name
            arguments = parsed.command.action.takes.parse(parsed.text)
            assert arguments.get("person", "bob") == "bob", (name, text)
            assert arguments["seconds"] == seconds, (name, text)
