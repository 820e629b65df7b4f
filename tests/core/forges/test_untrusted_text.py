"""Text of agents, requests and issues does nothing on a forge, as a renderer of Markdown judges."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Final
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from draftsman.forges.body import body_of, title_of
from draftsman.forges.untrusted_text import block, cell, code, inert, line, quote
from draftsman.formats.invisible import escape_invisible
from draftsman_testing.forges.world import CLOSES, MENTION
from tests.attacks.catalog import attack
from tests.core.forges.test_body import FACTS, LIMITS
from tests.support.cases import cases

MARKDOWN: Final = MarkdownIt("gfm-like", {"html": True})
EVIL: Final = "https://evil.example/?leak=1"
SKIPS: Final = re.compile(
    r"\[(?=\w)[^\]\n]*(?:skip|\bci\b|nobuild|no build)[^\]\n]*\]|NO_CI|^skip-checks:",
    re.IGNORECASE | re.MULTILINE,
)
TRAILERS: Final = re.compile(
    r"^[ \t]*(?:[A-Za-z]+(?:-[A-Za-z]+)+|BREAKING CHANGE|Fixes|Closes|Refs?|Cc|Bug)[ \t]*:",
    re.MULTILINE | re.IGNORECASE,
)
DRAWN: Final = {"mermaid", "plantuml", "suggestion", "geojson"}
ACTIVE: Final = (
    f"![a picture]({EVIL})",
    f"[![x]({EVIL})]({EVIL})",
    f"![x][r]\n\n[r]: {EVIL}",
    f"[click]({EVIL} 'title')",
    f"[click][r]\n\n[r]: <{EVIL}>",
    f"[\u200b]({EVIL})",
    f"<img src='{EVIL}'>",
    f"<img\nsrc='{EVIL}'>",
    f"<picture><source srcset='{EVIL}'></picture>",
    f"<a href='{EVIL}'>a</a>",
    f"<{EVIL}>",
    "<!-- hidden -->",
    "<details><summary>more",
    "<?php ?>",
    "<![CDATA[x]]>",
    f"&lt;img src={EVIL}&gt;",
    "@anna",
    "_@acme/team_",
    "&#64;anna",
    "Fixes #12",
    "closes acme/pay#3",
    "resolves: https://github.com/acme/pay/issues/4",
    "fixes gh-12",
    "PAY-1 #close #time 2h",
    "[skip ci]",
    "[CI Skip]",
    "[no ci]",
    "[skip actions]",
    "[skip-ci]",
    "[azurepipelines skip]",
    "***NO_CI***",
    "skip-checks: true",
    "Co-authored-by: Eve <eve@evil.example>",
    "Signed-off-by: Eve <eve@evil.example>",
    "  Reviewed-by : Eve <eve@evil.example>",
    "Change-Id: I0123456789",
    "BREAKING CHANGE: all of it",
    "Fixes: 0123456789ab",
    "/merge",
    "> /approve",
    f"```mermaid\nflowchart LR\nA@{{ img: '{EVIL}' }}\n```",
    "~~~ plantuml\n!include https://evil.example\n~~~",
    "1. ```suggestion\nx\n```",
)
PIECES: Final = (
    *ACTIVE,
    *("[", "]", "(", ")", "!", "<", ">", "`", "```", "~~~", "\\", "|", "&", ";", ":", "#", "@"),
    *("\n", "\n\n", " ", "> ", "- ", "1. ", "    ", "\t", "*", "_", "a", "12", "img", "\u200b"),
)
TEXTS: Final = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
FIELDS: Final[tuple[Callable[[str, int], str], ...]] = (inert, line, cell, quote, block)


def tokens(text: str) -> Iterator[Token]:
    for token in MARKDOWN.parse(text):
        yield token
        yield from token.children or ()


def effects(text: str) -> list[str]:
    """Return what a forge would load, hide, draw or do because of a text."""
    found = []
    parsed = list(tokens(text))
    for token, following in zip_longest(parsed, parsed[1:]):
        if token.type in {"image", "html_inline", "html_block"}:
            found.append(token.content or token.type)
        if token.type == "link_open" and following is not None:
            address = (
                unquote(str(token.attrs["href"])).removeprefix("mailto:").removeprefix("http://")
            )
            shown = unquote(following.content).removeprefix("http://")
            found += [] if token.info == "auto" and address.endswith(shown) else [address]
        if token.type == "fence" and token.info.split()[:1] and token.info.split()[0] in DRAWN:
            found.append(token.info)
        if token.type == "text":
            found += MENTION.findall(token.content)
    return found + [match[0] for match in CLOSES.finditer(text)] + acts_in_commit(text)


def acts_in_commit(text: str) -> list[str]:
    patterns = (CLOSES, SKIPS, TRAILERS)
    return [match[0] for pattern in patterns for match in pattern.finditer(text)]


def test_the_judge_sees_each_effect() -> None:
    harmless = {"PAY-1 #close #time 2h", "/merge", "> /approve", "fixes gh-12"}
    harmless |= {f"&lt;img src={EVIL}&gt;", f"<{EVIL}>"}
    assert [text for text in ACTIVE if not effects(text) and text not in harmless] == []


@attack(
    "A summary, request or issue has images, hidden links and HTML, which leak data when people"
    " open the pull request or a comment",
    surface="input",
    with_sandbox="shown as text, with its address; nothing is loaded",
)
@given(TEXTS)
@example("![x](https://evil.example/a.png)")
@example("[a]: https://evil.example\n\n![a]")
def test_no_field_of_a_body_has_an_effect(text: str) -> None:
    for field in FIELDS:
        assert effects(field(text, 2000)) == [], field
    assert acts_in_commit(code(text, 2000)) == []


@given(TEXTS, TEXTS, TEXTS)
def test_a_body_has_only_the_effects_of_the_worker(title: str, request: str, summary: str) -> None:
    facts = replace(FACTS, title=title, request=request, summary=summary, requester=title)
    own = {"Closes #12", "Closes #13"}
    body = body_of(facts, LIMITS)
    found = {effect.strip() for effect in effects(body)}
    assert {effect for effect in found if not effect.startswith("<!-- draftsman")} <= own | {
        "#12",
        "#13",
    }
    assert effects(title_of(facts, LIMITS)) == []


@cases("text", list(ACTIVE))
def test_each_kind_of_effect_is_ended_and_its_text_stays(text: str) -> None:
    shown = inert(text, 2000)
    assert effects(shown) == []
    assert shown.replace("\u200b", "") == escape_invisible(text)
    assert "\u200b" in shown


@attack(
    "A summary has trailers of a commit, [skip ci] and closing keywords, which act at the merge",
    surface="input",
    with_sandbox="they are ended in titles, bodies, commits and comments; draftsman's own stay",
)
def test_git_reads_no_trailer_of_an_agent() -> None:
    summary = "\n".join(("done", "", *(text for text in ACTIVE if TRAILERS.search(text))))
    assert _trailers(f"subject\n\n{summary}") != ""
    assert _trailers(f"subject\n\n{inert(summary, 20_000)}") == ""


def _trailers(message: str) -> str:
    command = ["git", "interpret-trailers", "--parse"]
    return subprocess.run(command, input=message, capture_output=True, text=True, check=True).stdout


@cases(
    "text",
    [
        "- [x] done\n- [ ] next",
        "`a[0](b)` is 50% of C# & more: see a.py:12",
        "Note: the total is rounded once",
        "1. first\n2. second\n\n```\ncode\n```",
        "D-142: see a/b and list[int]",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert inert(text, 500).replace("]\u200b(", "](") == text
