"""`draftsman demo --slack` and `--trello`: the whole story, on the page of the fake."""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_bots.trello.records.service import boards_of
from tests.acceptance.processes import Installation, Process
from tests.core.worker.agent_jobs import git
from tests.support.page_visitor import PageVisitor, visiting

PAGE = re.compile(r"http://127\.0\.0\.1:\d+/\S+/")


@asynccontextmanager
async def demonstration(
    installation: Installation, option: str, end: signal.Signals = signal.SIGINT
) -> AsyncIterator[tuple[PageVisitor, Process]]:
    """Run a demo on a small repository, visit its page, and end it, with Ctrl-C."""
    repo = installation.folder / "inventory"
    if not repo.exists():
        await make_sample_repo(repo)
        git("rm", "-qr", "tests", cwd=repo)  # its tests take the most time of the story
        git("commit", "-qm", "Count without tests", cwd=repo)
    demo = installation.start(
        *("--config", str(installation.config), "demo", option, "--no-browser"),
        *("--repo", str(repo)),
    )
    await demo.says("Ctrl-C ends the demo")
    [url] = PAGE.findall(demo.output_text)
    async with visiting(url) as visitor:
        await visitor.become("Anna")
        yield visitor, demo
    demo.signal(end)
    assert await demo.end() == (0 if end is signal.SIGINT else -end), demo.output_text


def printed_steps(demo: Process) -> set[str]:
    """Return the labels of the steps of D-1."""
    return set(re.findall(r"^ +[\d.]+ s  (\w+) +D-1\b", demo.output_text, re.MULTILINE))


STEPS = {"queued", "parked", "resumed", "approval", "branch", "completed"}


async def test_the_whole_story_is_told_on_the_page_of_slack(
    installation: Installation, rt: Runtime
) -> None:
    async with demonstration(installation, "--slack") as (visitor, demo):
        await visitor.press("Send")
        await visitor.sees("Which fixes should be applied to inventory?")
        await visitor.press("safe fixes")
        await visitor.sees("D-1/1 was answered by anna: safe fixes")
        await visitor.press("Approve")
        await visitor.sees("anna may not approve")
        await visitor.become("Ben")
        await visitor.press("Approve")
        await visitor.sees("D-1/2 was approved by ben")
        await visitor.sees("safe fixes applied to 3 files")
        await visitor.press("Send", text="/draftsman fix --repo=inventory Tidy up again")
        await visitor.sees("D-2")
    assert printed_steps(demo) >= STEPS | {"refused"}
    statuses = {job.number: job.status for job in await rt.read_model.jobs()}
    assert statuses == {1: Status.COMPLETED, 2: Status.CANCELED}
    assert await rt.read_model.workers() == []


@pytest.mark.slow(fast="test_the_whole_story_is_told_on_the_page_of_slack")
async def test_the_whole_story_is_told_on_the_page_of_trello(
    installation: Installation, rt: Runtime
) -> None:
    async with demonstration(installation, "--trello") as (visitor, demo):
        await visitor.press("Add label: draftsman")
        await visitor.sees("Which fixes should be applied to inventory?")
        await visitor.press("☐ 1 · safe fixes")
        await visitor.sees("was answered by anna: safe fixes")
        await visitor.sees("asks for approval")
        await visitor.become("Ben")
        await visitor.press("Comment", text="approve")
        await visitor.sees("was approved by ben")
        await visitor.sees("safe fixes applied to 3 files")
        await visitor.sees("Done (1)")
        await demo.says(" s  completed ")
    assert printed_steps(demo) >= STEPS
    [job] = await rt.read_model.jobs()
    assert job.status is Status.COMPLETED
    assert await boards_of(rt).all() == []


@pytest.mark.slow(
    fast="tests/tui/cli/demo/test_unfinished.py::test_what_a_killed_demo_left_is_removed"
)
async def test_the_next_demo_removes_what_a_killed_demo_left(
    installation: Installation, rt: Runtime
) -> None:
    async with demonstration(installation, "--trello", signal.SIGKILL) as (visitor, _):
        await visitor.press("Add label: draftsman")
        await visitor.sees("Which fixes should be applied to inventory?")
    assert len(await boards_of(rt).all()) == 1
    async with demonstration(installation, "--slack") as (_, demo):
        assert "an earlier demo was killed: canceled 1 job and removed 1 board" in demo.output_text
        assert await boards_of(rt).all() == []
        [job] = await rt.read_model.jobs()
        assert job.status is Status.CANCELED
    assert [*installation.folder.rglob("demo-chat-*")] == []


@pytest.mark.slow(fast="tests/tui/cli/demo/test_unfinished.py::test_a_killed_demo_is_taken_over")
@pytest.mark.parametrize("option", ["--slack", "--trello"])
async def test_a_demo_goes_on_where_it_was_killed(
    installation: Installation, rt: Runtime, option: str
) -> None:
    first, choice = {
        "--slack": ("Send", "safe fixes"),
        "--trello": ("Add label: draftsman", "☐ 1 · safe fixes"),
    }[option]
    async with demonstration(installation, option, signal.SIGKILL) as (visitor, demo):
        [page] = PAGE.findall(demo.output_text)
        await visitor.press(first)
        await visitor.sees("Which fixes should be applied to inventory?")
    async with demonstration(installation, option) as (visitor, demo):
        assert PAGE.findall(demo.output_text) == [page]
        assert "its page and its jobs go on" in demo.output_text
        assert await visitor.text() != ""
        await visitor.press(choice)
        await visitor.sees("was answered by anna: safe fixes")
        await visitor.become("Ben")
        if option == "--slack":
            await visitor.press("Approve")
        else:
            await visitor.sees("asks for approval")
            await visitor.press("Comment", text="approve")
        await visitor.sees("safe fixes applied to 3 files")
    [job] = await rt.read_model.jobs()
    assert job.status is Status.COMPLETED
    assert await boards_of(rt).all() == []
    assert [*installation.folder.rglob("demo-chat-*")] == []


async def test_a_second_demo_in_a_chat_is_refused_while_the_first_runs(
    installation: Installation, rt: Runtime
) -> None:
    async with demonstration(installation, "--slack") as (visitor, demo):
        second = ("--config", str(installation.config), "demo", "--trello", "--no-browser")
        done = await installation.run(*second)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stdout
        error = f"a demo in a chat already runs in {installation.data} (process {demo.pid}); end it"
        assert error in done.stderr
        await visitor.press("Send")
        await visitor.sees("Which fixes should be applied to inventory?")


@pytest.mark.slow(fast="tests/tui/cli/demo/test_agent.py::test_each_kind_of_demo_has_its_own_data")
async def test_demos_of_two_chats_run_beside_each_other(installation: Installation) -> None:
    none = {"DRAFTSMAN_DATABASE_URL": "", "DRAFTSMAN_CONFIG": ""}
    demos = []
    for option in ("--slack", "--trello"):
        demos.append(installation.start("demo", option, "--no-browser", env=none))
        await demos[-1].says("Ctrl-C ends the demo")
    try:
        for demo, button in zip(demos, ("Send", "Add label: draftsman"), strict=True):
            [url] = PAGE.findall(demo.output_text)
            async with visiting(url) as visitor:
                await visitor.become("Anna")
                await visitor.press(button)
                await visitor.sees("Which fixes should be applied to inventory?")
    finally:
        for demo in demos:
            demo.signal(signal.SIGINT)
        for demo, chat in zip(demos, ("slack", "trello"), strict=True):
            assert await demo.end() == 0, demo.output_text
            config = str(installation.data / f"demo-{chat}" / "draftsman.toml")
            unset = {"DRAFTSMAN_DATABASE_URL": "", "DRAFTSMAN_DATA_DIR": ""}
            await installation.run("--config", config, "db", "stop", "--yes", **unset)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--no-browser"], "--no-browser applies to a page; add --slack or --trello"),
        (["--slack", "--kill"], "--kill does not apply to --slack, whose story is on a page"),
        (["--slack", "--answer", "all"], "--answer does not apply to --slack"),
        (["--slack", "--json"], "--json does not apply to --slack"),
    ],
)
async def test_options_that_do_not_fit_together_are_refused(
    installation: Installation, options: list[str], error: str
) -> None:
    done = await installation.run("demo", *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert error in done.stderr
