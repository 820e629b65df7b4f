"""One word is one number: the counts of the same data on every surface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from draftsman.formats.amounts import COUNT_LIMIT, count_text
from draftsman.jobs.counts import WORDS, number_of
from draftsman.jobs.job import Status
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_testing.factories import QUESTION, Factory
from draftsman_tui.cli.processes import foreground
from draftsman_tui.dashboard.attention.attention import AttentionCount
from draftsman_tui.dashboard.frame.dashboard_stats import DashboardStats, WorkerStats
from draftsman_tui.dashboard.jobs.view import JobsResource
from draftsman_tui.dashboard.questions.view import InboxResource
from draftsman_tui.dashboard.tables.filter import NOTHING
from draftsman_tui.dashboard.tables.grouping import GroupHead
from draftsman_tui.dashboard.tables.resource import Query
from draftsman_tui.dashboard.tables.screen import TableState, shown_lines, table_tabs, title_parts
from draftsman_tui.dashboard.widgets.overview import lines
from tests.tui.cli.cli_runner import Cli

PAIR: Final = re.compile(r"([0-9,]+\+?) +([a-z]+(?: [a-z]+)*)")
"""`3 running`; of the overview, the word is first."""
OTHERS: Final = ("questions for you", "open questions", "failures", "closed")
"""Words that count no statuses."""
ROOT: Final = Path(__file__).resolve().parents[3]
REPO: Final = "https://git.example/acme/pay"


def numbers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the number of each word of the vocabulary."""
    known = {*WORDS, *OTHERS}
    return {word: number for number, word in pairs if word in known}


async def test_each_word_has_the_same_number_on_every_surface(
    make: Factory,
    rt: Runtime,
    owner: Actor,
    cli: Cli,
) -> None:
    for _ in range(3):
        await make.queued()
        await make.asked(type="run_agent", repo=REPO)
    await make.asked(QUESTION.model_copy(update={"text": "And this?"}), repo=REPO)
    await make.completed()
    await make.running()
    for _ in range(3):
        await make.dead()
    await rt.job_control.dismiss(await make.failed(), owner)
    open_failures = await rt.read_model.open_failures()
    counts = await rt.read_model.counts()
    assert counts is not None
    questions = await rt.questions.counts(owner)
    stats = DashboardStats(counts, WorkerStats(), open_failures=open_failures)
    now = await rt.checkpoints.now()
    surfaces: dict[str, Mapping[str, str]] = {}
    header = lines(stats, now, width=300, waiting=questions.for_you).plain.splitlines()[0]
    badge, _, words = header.strip().partition("   ")
    pairs = [(number, word) for word, number in re.findall(r"([a-z ]+?) ([0-9,+]+)(?:  |$)", words)]
    surfaces["overview"] = numbers([*PAIR.findall(badge), *pairs])
    tabs = table_tabs(stats, AttentionCount(questions.open, questions.for_you))
    tab_words = {"jobs": "jobs", "inbox": "open questions", "dead": "dead letter"}
    surfaces["tabs"] = {
        tab_words[tab.name]: count_text(tab.count or 0) for tab in tabs if tab.name in tab_words
    }
    jobs = JobsResource()
    rows = await jobs.fetch(rt, Query(NOTHING, now, group="attention", limit=10))
    state = TableState(rows=rows)
    heads = [line for line in shown_lines(jobs, state) or () if isinstance(line, GroupHead)]
    surfaces["groups"] = numbers((head.count, head.label) for head in heads)
    surfaces["title"] = {"jobs": title_parts("jobs", state)[1]}
    inbox = await InboxResource().fetch(rt, Query(NOTHING, now, viewer=owner, limit=1))
    surfaces["inbox"] = {"open questions": title_parts("inbox", TableState(rows=inbox))[1]}
    surfaces["status line"] = numbers(PAIR.findall(await foreground.numbers(rt, stopping=False)))
    surfaces["stats"] = numbers(PAIR.findall((await cli("stats")).out))
    surfaces["questions"] = numbers(PAIR.findall((await cli("questions")).err))
    listed: dict[str, Any] = (await cli("stats", "--json")).json
    surfaces["json"] = {"open questions": count_text(listed["open_questions"])}
    expected = {word: count_text(number_of(word, counts)) for word in WORDS}
    expected |= {
        "questions for you": count_text(questions.for_you),
        "open questions": count_text(questions.open),
        "failures": count_text(sum(open_failures.values())),
        "closed": "2",
    }
    assert (questions.open, questions.for_you, expected["waiting"]) == (2, 2, "4")
    for surface, found in surfaces.items():
        assert found, surface
        assert found == {word: expected[word] for word in found}, surface
    assert [*surfaces["groups"]] == ["needs a person", "running", "waits", "failures"]


def test_a_count_ends_at_the_limit() -> None:
    assert count_text(COUNT_LIMIT - 1) == "9,999"
    assert count_text(COUNT_LIMIT) == count_text(10 * COUNT_LIMIT) == "10,000+"


def test_the_glossary_has_each_word() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    statuses = {status.replace("_", " ") for status in Status}
    for word in {*WORDS, *OTHERS} - statuses:
        assert f"\n| {word} |" in glossary, word
