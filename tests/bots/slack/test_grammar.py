"""The parser of text commands: every text has a result, and none raises."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from draftsman_bots.slack.commands.command_parser import (
    OPTIONS,
    VERBS,
    InvalidText,
    JobRequest,
    TextCommand,
    parse,
    parse_request,
)
from tests.support.cases import cases


@cases(
    ("text", "expected"),
    [
        ("fix the parser", JobRequest("the parser", "fix")),
        ("  FIX\n the\n parser ", JobRequest("the\n parser", "fix")),
        ("investigate why it is slow", JobRequest("why it is slow", "investigate")),
        ("fix --repo=https://x.org/a it", JobRequest("it", "fix", {"repo": "https://x.org/a"})),
        ("fix --repo https://x.org/a it", JobRequest("it", "fix", {"repo": "https://x.org/a"})),
        ("fix it --ref=v1 --agent=tidy", JobRequest("it", "fix", {"ref": "v1", "agent": "tidy"})),
        ("fix —ref=v1 it", JobRequest("it", "fix", {"ref": "v1"})),
        ('fix --ref="a b" it', JobRequest("it", "fix", {"ref": "a b"})),
        ("fix --ref “a b” it", JobRequest("it", "fix", {"ref": "a b"})),
        ('fix it --ref="a b"', JobRequest("it", "fix", {"ref": "a b"})),
        ("fix --mode=investigate it", JobRequest("it", "investigate")),
        ('fix "--repo is ignored"', JobRequest("--repo is ignored", "fix")),
        ("fix “it”", JobRequest("it", "fix")),
        ("fix -- --ref=v1 is ignored", JobRequest("--ref=v1 is ignored", "fix")),
        ('fix "it" and "that"', JobRequest('"it" and "that"', "fix")),
        ("fix what --speed=11 does", JobRequest("what --speed=11 does", "fix")),
        ("fix the payload parser", JobRequest("the payload parser", "fix")),
        ("/fix the parser", JobRequest("the parser", "fix")),
        ("/Status D-142", TextCommand("status", "D-142")),
        ("/etc/hosts", InvalidText("/etc/hosts")),
        ("status", TextCommand("status")),
        ("status D-142", TextCommand("status", "D-142")),
        ("cancel 142 no time", TextCommand("cancel", "142", "no time")),
        ("answer D-1/2 the  second", TextCommand("answer", "D-1/2", "the  second")),
        ("approve D-1/2", TextCommand("approve", "D-1/2")),
        ("deny D-1/2 too risky", TextCommand("deny", "D-1/2", "too risky")),
        ("deny too risky", TextCommand("deny", "", "too risky")),
        ("Retry d-7", TextCommand("retry", "d-7")),
        ("show 0190aaaa-bbbb", TextCommand("show", "0190aaaa-bbbb")),
        ("", TextCommand("help")),
        (" \t\n", TextCommand("help")),
        ("make it so", InvalidText("make it so")),
        ("fixing", InvalidText("fixing")),
    ],
)
def test_text_is_parsed_to_a_command_or_request(
    text: str, expected: JobRequest | TextCommand | InvalidText
) -> None:
    assert parse(text) == expected


@cases(
    ("text", "why"),
    [
        ("fix", "the text is missing"),
        ("fix --ref=v1", "the text is missing"),
        ('fix ""', "the text is missing"),
        ("fix --repot=x it", "unknown option --repot; options: --repo, --agent, --ref, --mode"),
        ("fix --ref=v1 it --ref=v2", "--ref is set twice"),
        ("fix --ref= it", "--ref needs a value"),
        ("fix --mode=deploy it", "--mode must be fix or investigate, not 'deploy'"),
        ("fix --agent", "--agent needs a value"),
    ],
)
def test_invalid_command_states_the_reason(text: str, why: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, InvalidText)
    assert why in parsed.reason


WORDS = st.sampled_from([
    "fix", "investigate", *VERBS, "D-1", "D-1/2", "--", "—", "--repo", "--repo=", "=", '"', "“",
    "”", "'", "--mode=fix", "--ref=v1", " ", "\n", "\x00", "\ud800", "text",
])  # fmt: skip


@given(st.one_of(st.text(), st.lists(WORDS, max_size=12).map(" ".join)))
def test_any_text_is_parsed_without_loss(text: str) -> None:
    match parse(text):
        case JobRequest(message, mode, options):
            assert message.strip()
            assert mode in ("fix", "investigate")
            assert options.keys() <= set(OPTIONS)
            assert message in text
            assert all(value and value in text for value in options.values())
        case TextCommand(verb, ref, rest):
            assert verb in VERBS
            assert ref in text
            assert rest in text
        case InvalidText(message, _):
            assert message.strip() in text


def test_the_request_of_a_schedule_may_begin_with_a_slash() -> None:
    assert parse_request("/investigate the queue") == JobRequest("the queue", "investigate")
    assert isinstance(parse_request("/deny D-142"), InvalidText)
