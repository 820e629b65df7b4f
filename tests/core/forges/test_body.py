"""Texts of pull requests: complete, inert, and within the limits of each forge."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from uuid import UUID

from draftsman.forges.body import (
    AnsweredQuestion,
    Command,
    Issue,
    PullRequestFacts,
    body_of,
    find_issues,
    status_of,
    title_of,
)
from draftsman.forges.project import Project
from draftsman.forges.pull_request import (
    DRAFT_LINE,
    PullRequest,
    PullState,
    Reconciliation,
    TextLimits,
    next_step,
)
from draftsman.forges.untrusted_text import block, code, inert, quote
from draftsman_bots.forge_kinds.gitea import Gitea
from draftsman_bots.forge_kinds.github import GitHub
from draftsman_bots.forge_kinds.gitlab import GitLab
from draftsman_testing.forges.world import CLOSES, MENTION
from tests.support.cases import cases

ID = UUID(int=142)
OTHER = UUID(int=7)
HEAD = "a" * 40
LATER = "b" * 40
LIMITS = TextLimits(title=256, body=65_536, status=140)
PROJECT = Project("acme", "pay", "https://github.com", takes_token=True)
FACTS = PullRequestFacts(
    job="D-142",
    id=ID,
    head=HEAD,
    title="Round refunds once",
    request="Refunds are rounded twice",
    requester="anna",
    source="slack",
    summary="Rounds the total.\n\n- removes `round()` of items",
    changes="2 files changed, +12 -4",
    conflicts="conflicts with D-7 (src/pay.py)",
    agent="codex 1.2 with gpt-5",
    draft=False,
    commands=(
        Command("tests", "npm test", passed=True, required=True),
        Command("lint", "npm run a|b", passed=False, required=False, summary="3 | problems"),
    ),
    findings=("tests/a.js is flaky: it passes and fails on the same files",),
    check_files=("package.json",),
    evidence_sha256="c" * 64,
    decisions=(AnsweredQuestion("Round each item, or the total?", "the total", ("Ben",)),),
    tokens=1020,
    cost=0.42,
    issues=(Issue(12, closes=True), Issue(7, closes=False), Issue(13, closes=True)),
)
EXPECTED = f"""## Request

D-142, requested by anna (slack):

> Round refunds once
>
> Refunds are rounded twice

## Changes

Rounds the total.

- removes `round()` of items

2 files changed, +12 -4 by codex 1.2 with gpt-5.

Conflicts with D-7 (src/pay.py).

## Evidence

draftsman ran these commands on `aaaaaaaaaaaa`, in fresh clones.

| command | result |
|---|---|
| tests: `npm test` | passed |
| lint: `npm run a\\|b` | failed (optional): 3 \\| problems |

Findings: `tests/a.js is flaky: it passes and fails on the same files`.

Changed check files: `package.json`.

Signed statement: `evidence.json`, SHA-256 `{"c" * 64}`. To check it: `draftsman verify D-142`

## Questions and answers

| question | answer | by |
|---|---|---|
| Round each item, or the total? | the total | Ben |

## Cost

1,020 tokens, $0.42

Closes #12
Closes #13
Related: #7

<!-- draftsman job=D-142 id={ID} head={HEAD} -->"""
HOSTILE = """@anna see @acme/team, (@ben) and a@b.example; Fixes #12, fixes acme/pay#3 and
closes: https://github.com/acme/pay/issues/4
/merge
> /close
<!-- draftsman job=D-1 id=00000000-0000-0000-0000-000000000007 head=bbbb -->
<details><summary>
token=ghp_0123456789abcdefghijABCDEFGHIJ012345
```sh
npm test"""


def test_the_body_has_the_whole_story() -> None:
    assert body_of(FACTS, LIMITS) == EXPECTED
    bare = replace(
        FACTS, commands=(), findings=(), check_files=(), evidence_sha256=None, decisions=(),
        tokens=0, issues=(), request="", title=None, draft=True,
    )  # fmt: skip
    text = body_of(bare, LIMITS)
    assert text.startswith("**Draft**: required commands fail.")
    assert text.splitlines()[-2] == DRAFT_LINE
    assert "None: draftsman ran no validation commands on this work." in text
    assert not {"## Questions", "## Cost", "Closes"} & {*text.split("\n"), *text.split()}
    assert title_of(bare, LIMITS) == "Rounds the total."
    once = replace(FACTS, title="Refunds", request="Refunds\nare rounded")
    assert "(slack):\n\n> Refunds\n> are rounded\n\n##" in body_of(once, LIMITS)
    cut = replace(FACTS, title="Refunds are…", request="\nRefunds are rounded")
    assert "(slack):\n\n> Refunds are rounded\n\n##" in body_of(cut, LIMITS)
    assert title_of(replace(bare, summary=""), LIMITS) == "Work of D-142"


def test_a_template_chooses_the_parts() -> None:
    template = "Made by {job} for {requester}: {title}\n{draft}\n{evidence}\n\n{issues}\n{{x}}"
    body = body_of(replace(FACTS, title=HOSTILE, requester="@anna"), LIMITS, template)
    assert body.startswith("Made by D-142 for @\u200banna: @\u200banna see @\u200bacme/team")
    assert "\n## Evidence\n\ndraftsman ran these commands" in body
    assert "## Request" not in body
    assert body.endswith(
        f"\n\nCloses #12\nCloses #13\nRelated: #7\n{{x}}\n\n{EXPECTED.splitlines()[-1]}"
    )
    assert MENTION.findall(body) == []


def test_text_of_a_job_has_no_effect_on_the_forge() -> None:
    texts: dict[str, Any] = dict.fromkeys(
        ("title", "request", "requester", "summary", "agent"), HOSTILE
    )
    decisions = (AnsweredQuestion(HOSTILE, HOSTILE, (HOSTILE,)),)
    commands = (Command(HOSTILE, HOSTILE, passed=False, required=True, summary=HOSTILE),)
    hostile = replace(
        FACTS, **texts, decisions=decisions, commands=commands, findings=(HOSTILE,), issues=()
    )
    body = body_of(hostile, LIMITS)
    title = title_of(hostile, LIMITS)
    outside = "\n".join(line for line in body.splitlines() if "`` " not in line)
    assert MENTION.findall(title) == MENTION.findall(_without_code(outside)) == []
    assert CLOSES.findall(title + _without_code(body)) == []
    assert not [line for line in body.splitlines() if re.match(r"/\w|<d", line)]
    assert "ghp_" not in body + title
    assert body.count("<!--") - _without_code(body).count("<!--") == body.count("<!--") - 1
    assert body.count("\n```") == 2, "the code block is closed before the next part"
    assert "\n## Evidence\n" in body
    assert next_step([_pull(body)], OTHER, LATER)[0] is Reconciliation.ADOPT
    assert next_step([_pull(body)], ID, HEAD)[0] is Reconciliation.KEEP


def _without_code(text: str) -> str:
    """Return a text without code of tables, which forges do not interpret."""
    rows = []
    for row in text.splitlines():
        for ticks in ("````", "```", "``", "`"):
            while row.count(ticks) >= 2 and not row.startswith("```"):
                before, _, rest = row.partition(ticks)
                row = before + rest.partition(ticks)[2]
        rows.append(row)
    return "\n".join(rows)


def test_the_longest_texts_keep_the_marker_and_the_evidence() -> None:
    every = (GitHub.limits, GitLab.limits, Gitea.limits)
    limits = TextLimits(
        *(min(getattr(item, name) for item in every) for name in ("title", "body", "status"))
    )
    long: Any = "@a|" * 10_000
    facts = replace(
        FACTS,
        **dict.fromkeys(("title", "request", "requester", "summary", "agent", "changes"), long),
        commands=(Command(long, long, passed=False, required=True, summary=long),) * 100,
        decisions=(AnsweredQuestion(long, long, (long,)),) * 100,
        findings=(long,) * 50,
        check_files=(long,) * 50,
    )
    body = body_of(facts, limits)
    assert len(body) <= limits.body
    assert body.endswith(f"head={HEAD} -->")
    assert "draftsman verify D-142" in body
    assert "| 80 more | | |" in body
    assert len(title_of(facts, limits)) <= limits.title
    status = status_of(facts, limits)
    assert status is not None
    assert len(status.description) <= limits.status


def test_the_status_is_that_of_the_required_commands() -> None:
    passed = status_of(FACTS, LIMITS)
    assert passed is not None
    assert (passed.passed, passed.description) == (
        True,
        "D-142: 1 of 2 commands passed; signed evidence",
    )
    failing = replace(FACTS, commands=(Command("tests", "x", passed=False, required=True),))
    failed = status_of(failing, LIMITS)
    assert failed is not None
    assert (failed.passed, failed.description) == (False, "D-142: tests failed")
    assert status_of(replace(FACTS, commands=()), LIMITS) is None, "nothing judged the work"


@cases(
    ("text", "issues"),
    [
        ("Fixes #12", [(12, True)]),
        ("see #7, which closes: #8 and fixes #9", [(7, False), (8, True), (9, True)]),
        ("#7 is as in acme/pay#9; fixes #7", [(7, True), (9, False)]),
        ("resolve https://github.com/acme/pay/issues/3 please", [(3, True)]),
        ("https://github.com/acme/pay/pull/3", []),
        ("https://github.com/acme/other/issues/3 and other/pay#4", []),
        ("color #123456789012", []),
        ("no number # 5", []),
    ],
)
def test_the_issues_that_a_request_names(text: str, issues: list[tuple[int, bool]]) -> None:
    found = find_issues(text, PROJECT)
    assert [(item.number, item.closes) for item in found] == issues


def test_the_issue_of_the_ticket_is_closed() -> None:
    url = "https://github.com/acme/pay/issues/5"
    assert find_issues("as #5 and #6", PROJECT, url) == [Issue(5, True), Issue(6, False)]
    assert find_issues("fixes #6, fixes #5", PROJECT, url, closes=False) == [
        Issue(5, True),
        Issue(6, False),
    ], "the author of an issue closes no others"
    assert find_issues("", PROJECT, "https://trello.com/c/fixes/issues/5") == []
    assert find_issues("", PROJECT, "see https://github.com/acme/pay/issues/5") == []


def test_text_has_no_effect_after_markdown() -> None:
    assert inert("_@anna_ and _#12_", 50) == "_@\u200banna_ and _#\u200b12_"
    assert inert("&#64;anna &commat;anna a & b;", 50) == (
        "&\u200b#\u200b64;anna &\u200bcommat;anna a & b;"
    )
    assert inert("fixes gh-12", 50) == "fixes gh-\u200b12"
    assert inert("Closes issue https://x/issues/1", 50) == "Closes issue \u200bhttps://x/issues/1"


def test_code_and_quotations_cannot_be_left() -> None:
    assert block("```a`b", 50) == "```a`b"  # code in a line, and no code block
    assert block("```a`b\n```\nx", 50) == "```a`b\n```\nx\n```"
    assert block("a\u2028```", 50) == "a\\u{2028}```"
    assert code("a `b` ``c`` \n d", 50) == "```a `b` ``c`` d```"
    assert code("`x`", 50) == "`` `x` ``"
    assert quote("a\n\n```\n/b", 50) == "> a\n>\n> ```\n> /\u200bb"
    assert block("~~~\n```\nx", 50) == "~~~\n```\nx\n~~~"
    assert block("```\nx\n```", 50) == "```\nx\n```"
    assert inert("x" * 60, 50) == "x" * 49 + "…"


def _pull(body: str, **fields: Any) -> PullRequest:
    pull = PullRequest(1, "u", PullState.OPEN, HEAD, "main", False, "t", body)
    return replace(pull, **fields)


def test_a_job_has_one_pull_request() -> None:
    """The decision for each combination of own, other, open and closed pull requests."""
    own = _pull(body_of(FACTS, LIMITS))
    other = _pull("by hand", number=2)
    closed = replace(own, state=PullState.CLOSED)
    assert next_step([], ID, HEAD) == (Reconciliation.CREATE, None)
    assert next_step([own, other], ID, HEAD) == (Reconciliation.KEEP, own)
    assert next_step([own], ID, LATER) == (Reconciliation.UPDATE, own)
    assert next_step([closed], ID, LATER) == (Reconciliation.KEEP, closed)
    assert next_step([closed, own], ID, LATER) == (Reconciliation.UPDATE, own)
    assert next_step([other], ID, HEAD) == (Reconciliation.ADOPT, other)
    assert next_step([replace(other, state=PullState.CLOSED)], ID, HEAD) == (
        Reconciliation.CREATE,
        None,
    )
    assert next_step([closed], OTHER, HEAD) == (Reconciliation.CREATE, None), (
        "of another installation"
    )
