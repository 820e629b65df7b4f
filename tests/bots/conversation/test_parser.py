"""The parser of what people write: every text has a meaning, and none raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.deliveries.documents.markdown import quoted
from draftsman.errors import UsageError
from draftsman.questions.question import Decision
from draftsman_bots.conversation.answers import ApprovalDecision
from draftsman_bots.conversation.commands import COMMANDS
from draftsman_bots.conversation.parser import (
    FORGE,
    REPLY,
    SLACK,
    ParsedText,
    is_attachment_only,
    parse,
    parse_scheduled,
    parse_slack,
)
from draftsman_bots.conversation.requests import MODES, OPTIONS, JobRequest
from tests.support.cases import cases

ME = "draftsman"
APPROVE = ApprovalDecision(Decision.APPROVE)
LINE = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=40)
PLAIN = st.from_regex(r"[a-z0-9]{1,10}( [a-z0-9]{1,10}){0,3}", fullmatch=True).filter(
    lambda text: text.split()[0] not in COMMANDS
)
WORDS = st.sampled_from([
    *COMMANDS, "/fix", "/tell", "@draftsman", "/draftsman", "D-1", "D-1/2", "142", "--", "—",
    "--repo", "--repo=", "=", '"', "“", "”", "'", "--mode=fix", "--ref=v1", " ", "\n", "> ", "```",
    "\x00", "\ud800", "text", "approve",
])  # fmt: skip
TEXT = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=12).map(" ".join))


def deny(reason: str | None = None) -> ApprovalDecision:
    """Return a denial."""
    return ApprovalDecision(Decision.DENY, reason=reason)


def meaning(parsed: ParsedText | None) -> dict[str, Any] | None:
    """Return what is set of a text, without its spelling."""
    if parsed is None:
        return None
    fields = {name: getattr(parsed, name) for name in ParsedText.__slots__}
    spelling = ("line", "literal", "ref", "doubtful")
    return {name: value for name, value in fields.items() if value and name not in spelling}


@cases(
    ("text", "expected"),
    [
        ("2", {"text": "2"}),
        ("/answer D-7/1 yes", {"verb": "answer", "text": "yes", "job": 7, "question": 1}),
        ("/answer D-7 yes", {"verb": "answer", "text": "yes", "job": 7}),
        ("/answer\n2", {"verb": "answer", "text": "2"}),
        ("/ANSWER: 2", {"verb": "answer", "text": "2"}),
        ("@Draftsman, yes please", {"addressed": True, "text": "yes please"}),
        ("@draftsman /answer 2", {"addressed": True, "verb": "answer", "text": "2"}),
        (
            "@draftsman d-7/1: blue",
            {"addressed": True, "verb": "answer", "text": "blue", "job": 7, "question": 1},
        ),
        ("Approve", {"text": "Approve", "decision": APPROVE}),
        ("/approve D-7/2", {"verb": "approve", "job": 7, "question": 2, "decision": APPROVE}),
        ("approve D-7/2", {"verb": "approve", "job": 7, "question": 2, "decision": APPROVE}),
        ("approve D-7/2 if it works", {
            "verb": "approve", "job": 7, "question": 2, "text": "if it works"
        }),
        ("/approve D-7/2 if it works", {
            "verb": "approve", "job": 7, "question": 2, "text": "if it works"
        }),
        ("deny D-7/2 no", {
            "verb": "deny", "job": 7, "question": 2, "text": "no", "decision": deny("no")
        }),
        ("@draftsman approve", {"addressed": True, "verb": "approve", "decision": APPROVE}),
        ("@draftsman approve it", {"addressed": True, "text": "approve it"}),
        ("deny", {"text": "deny", "decision": deny()}),
        ("deny not\nnow", {"text": "deny not\nnow", "decision": deny("not\nnow")}),
        ("/approve it", {"verb": "approve", "text": "it"}),
        ("approve\nit", {"text": "approve\nit"}),
        ("approved", {"text": "approved"}),
        ("@anna yes", None),
        ("@draftsmanish yes", None),
        ("/draftsmanship pause", {"text": "/draftsmanship pause", "unknown": "draftsmanship"}),
        ("please /draftsman pause", {"text": "please /draftsman pause"}),
        ("/paus now", {"text": "/paus now", "unknown": "paus"}),
        ("@draftsman /paus", {"addressed": True, "text": "/paus", "unknown": "paus"}),
        ("/answer /etc", {"verb": "answer", "text": "/etc"}),
        ("/etc/hosts", {"text": "/etc/hosts"}),
        ("/answerable", {"text": "/answerable", "unknown": "answerable"}),
        ("", None),
        ("> 2\n\n> 1", None),
        ("```\n2\n```", None),
        ("D-7/1 yes", {"text": "D-7/1 yes"}),
        ("/draftsman pause D-7 no API", {
            "addressed": True, "verb": "pause", "job": 7, "text": "no API"
        }),
        ("@draftsman, resume", {"addressed": True, "verb": "resume"}),
        ("/draftsman tell: use v2", {"addressed": True, "verb": "tell", "text": "use v2"}),
        ("@draftsman tell me why", {"addressed": True, "text": "tell me why"}),
        ("/tell it:\n```\ncode\n```\n> quote", {
            "verb": "tell", "text": "it:\n```\ncode\n```\n> quote"
        }),
        ("it:\n```\ncode\n```\n> quote", {"text": "it:\n```\ncode\n```"}),
        ("/draftsman cancel\r\nno time", {
            "addressed": True, "verb": "cancel", "text": "no time"
        }),
        ("/draftsman cancel the second refund", {
            "addressed": True, "text": "cancel the second refund"
        }),
        ("cancel D-7 no time", {"text": "cancel D-7 no time"}),
        ("/cancel 142", {"verb": "cancel", "job": 142}),
        ("/cancel 3 days off", {"verb": "cancel", "text": "3 days off"}),
        ("/ack D-7/1 2h\nthanks", {"verb": "ack", "job": 7, "question": 1, "text": "2h"}),
        ("/draftsman help", {"addressed": True, "verb": "help"}),
    ],
)  # fmt: skip
def test_comment_is_parsed(text: str, expected: dict[str, Any] | None) -> None:
    for dialect in (REPLY, FORGE):
        assert meaning(parse(text, dialect, name=ME)) == expected


@cases(
    ("text", "expected"),
    [
        ("fix the parser", JobRequest("the parser", "fix")),
        ("  FIX\n the\n parser ", JobRequest("the\n parser", "fix")),
        ("fix: the parser", JobRequest("the parser", "fix")),
        (
            "fix this\n> a quote\n```\ncode\n```",
            JobRequest("this\n> a quote\n```\ncode\n```", "fix"),
        ),
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
    ],
)
def test_request_has_a_mode_and_options(text: str, expected: JobRequest) -> None:
    assert parse_slack(text).request == expected
    on_forge = parse(f"@draftsman {text.strip()}", FORGE, name=ME)
    assert on_forge is not None
    assert on_forge.request == expected


@cases(
    ("text", "expected"),
    [
        ("/Status D-142", ("status", "D-142", "")),
        ("status", ("status", "", "")),
        ("status D-142", ("status", "D-142", "")),
        ("cancel 142 no time", ("cancel", "142", "no time")),
        ("answer D-1/2 the  second", ("answer", "D-1/2", "the  second")),
        ("approve D-1/2 it works", ("approve", "D-1/2", "it works")),
        ("deny D-1/2 too risky", ("deny", "D-1/2", "too risky")),
        ("deny too risky", ("deny", "", "too risky")),
        ("D-1/2 the second", ("answer", "D-1/2", "the second")),
        ("Retry d-7", ("retry", "d-7", "")),
        ("show 0190aaaa-bbbb", ("show", "0190aaaa-bbbb", "")),
        ("    list", ("list", "", "")),
        ("> quoted\nlist", ("list", "", "")),
        ("", ("help", "", "")),
        (" \t\n", ("help", "", "")),
        ("/etc/hosts", ("", "", "/etc/hosts")),
        ("make it so", ("", "", "make it so")),
        ("fixing", ("", "", "fixing")),
        ("```\nfix it\n```", ("", "", "```\nfix it\n```")),
    ],
)
def test_text_of_slack_is_parsed(text: str, expected: tuple[str, str, str]) -> None:
    parsed = parse_slack(text)
    assert (parsed.verb, parsed.ref, parsed.text) == expected


def test_only_slack_takes_a_reason_of_an_approval() -> None:
    assert parse_slack("approve D-1/2 it works").decision == ApprovalDecision(
        Decision.APPROVE, "it works"
    )
    assert parse_slack("approve D-1/2 it works", addressed=False).decision is None


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
        ("every sunny day fix it", "every"),
    ],
)
def test_invalid_request_states_the_reason(text: str, why: str) -> None:
    parsed = parse_slack(text)
    assert parsed.request is None
    assert why in parsed.problem


@given(TEXT, st.booleans())
def test_any_text_is_parsed_without_loss(text: str, addressed: bool) -> None:
    read = text.replace("\r\n", "\n").replace("\r", "\n")
    for parsed in (
        parse_slack(text, addressed=addressed),
        parse(text, REPLY, name=ME),
        parse(text, FORGE, name=ME),
    ):
        if parsed is None:
            continue
        assert parsed.verb == "" or parsed.verb in COMMANDS
        assert parsed.ref in read
        for part in (parsed.line, *parsed.text.split("\n")):
            assert part in read
        if parsed.decision and parsed.decision.decision is Decision.APPROVE:
            assert "approve" in text.casefold()
        if isinstance(parsed.request, JobRequest):
            assert parsed.request.text.strip()
            assert parsed.request.text in read
            assert parsed.request.mode in MODES
            assert parsed.request.options.keys() <= set(OPTIONS)
            assert all(value and value in read for value in parsed.request.options.values())
        is_attachment_only(parsed.text)


@given(TEXT)
def test_text_that_is_not_addressed_is_no_command_without_a_slash_or_a_name(text: str) -> None:
    for dialect in (SLACK, REPLY, FORGE):
        parsed = parse(text, dialect, name=ME)
        if parsed is None or not parsed.verb or parsed.addressed:
            continue
        assert (
            f"/{parsed.verb}" in text.casefold()
            or (parsed.decision and parsed.job)
            or (parsed.verb == "approve" and parsed.job)
        )


@given(PLAIN, st.lists(LINE, max_size=4))
def test_quoted_or_fenced_text_does_not_change_the_answer(answer: str, others: list[str]) -> None:
    before = quoted("\n".join(others))
    fenced = "\n".join(["```", *(line for line in others if "`" not in line), "```"])
    for text in (f"{before}\n\n{answer}", f"{fenced}\n{answer}", f"{answer}\n{before}"):
        for dialect in (SLACK, REPLY, FORGE):
            parsed = parse(text, dialect, name=ME)
            assert parsed is not None
            assert (parsed.line, parsed.text) == (answer, answer)


@given(st.lists(LINE, max_size=4), st.sampled_from(["approve", "/answer 2", "@draftsman 2"]))
def test_quoted_text_decides_nothing(others: list[str], answer: str) -> None:
    for dialect in (SLACK, REPLY, FORGE):
        assert parse(quoted("\n".join([*others, answer])), dialect, name=ME) is None
        assert parse(f"```\n{answer}\n```", dialect, name=ME) is None
    assert parse(f"    {answer}", REPLY, name=ME) is None
    assert parse(f"    {answer}", FORGE, name=ME) is None


@given(PLAIN, st.integers(1, 10**17), st.integers(1, 10**8))
def test_command_can_name_its_question(answer: str, job: int, question: int) -> None:
    for dialect in (SLACK, REPLY, FORGE):
        parsed = parse(f"/answer D-{job}/{question} {answer}", dialect, name=ME)
        assert meaning(parsed) == {
            "verb": "answer", "text": answer, "job": job, "question": question
        }  # fmt: skip


def test_the_request_of_a_schedule_may_begin_with_a_slash() -> None:
    assert parse_scheduled("/investigate the queue") == JobRequest("the queue", "investigate")
    assert parse_scheduled("the queue") == JobRequest("the queue", "fix")
    with pytest.raises(UsageError, match="it cannot run the command /deny"):
        parse_scheduled("/deny D-142")
