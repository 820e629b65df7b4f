"""Jobs that wait for other jobs: submit --after, show --tree, cancel --tree, and batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli, Terminal
from tests.tui.cli.conftest import As

NOOP = ("submit", "--unchecked", "--type", "noop")


def lines(path: Path, *requests: dict[str, Any]) -> Path:
    """Write requests of type `noop` to a file, a line each."""
    path.write_text("".join(json.dumps({"type": "noop"} | item) + "\n" for item in requests))
    return path


async def test_a_submitted_job_waits_and_why_names_its_parents(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    one = await make.queued()
    two = await make.running()
    done = await cli(*NOOP, "--after", f"D-{one},{two.number}", "--on", "any")
    name = done.out.split()[0]
    why = (await cli("why", name)).out
    assert f"waits for D-{one} (queued), {two.name} (running)" in why
    shown = (await cli("show", name)).out
    parents = f"  D-{one}  noop  queued  on any\n  {two.name}  noop  running  on any\n"
    assert f"\nParents\n{parents}" in shown
    await rt.settlement.outcome(two, Done())
    parents = (await cli("show", name, "--json")).json["parents"]
    assert parents == [
        {"number": one, "condition": "any", "met": None, "status": "queued"},
        {"number": two.number, "condition": "any", "met": True, "status": "completed"},
    ]


async def test_bad_options_are_refused_in_a_line(cli: Cli, make: Factory) -> None:
    (await cli(*NOOP, "--on", "any")).refused(2, "--on requires --after")
    (await cli(*NOOP, "--after", "D-1,build")).refused(
        2, "--after: 'build' is not a job; use D-142 or D-1,D-2"
    )
    (await cli(*NOOP, "--after", "D-99")).refused(3, "there is no job D-99")
    (await cli(*NOOP, "--after", "D-1,D-1")).refused(2, "after: the same job is named twice")
    job = await make.queued()
    (await cli("cancel", job, job, "--tree")).refused(2, "--tree takes a single job")
    (await cli("cancel", job, "--tree", "--force")).refused(2, "cannot be combined with --force")
    (await cli("show", "D-99", "--tree")).refused(3, "there is no job D-99")


async def test_a_batch_is_a_workflow_and_is_shown_as_a_tree(
    cli: Cli, tmp_path: Path, rt: Runtime, make: Factory
) -> None:
    path = lines(
        tmp_path / "flow.jsonl",
        {"name": "build", "title": "Build"},
        {"name": "test", "title": "Test", "after": ["build"]},
        {"name": "deploy", "title": "Deploy", "after": ["test", "build"]},
        {"title": "Report", "after": ["build"], "on": "failure"},
    )
    done = await cli("submit", "--batch", path, "--unchecked")
    names = [text.split()[0] for text in done.out.splitlines()]
    build, test, deploy, report = names
    tree = (await cli("show", build, "--tree")).out.splitlines()
    assert tree == [
        f"{build}  Build  queued",
        f"├─ {test}  Test  queued",
        f"│  └─ {deploy}  Deploy  queued  also after {build}",
        f"└─ {report}  Report  queued",
    ]
    document = (await cli("show", test, "--tree", "--json")).json
    assert [job["number"] for job in document["jobs"]] == [
        int(name.removeprefix("D-")) for name in (test, deploy)
    ]
    assert (document["total"], document["parents"][0]["status"]) == (2, "queued")
    work = await make.running(int(build.removeprefix("D-")))
    await rt.settlement.outcome(work, Done())
    assert (await cli("show", build, "--tree")).out.splitlines()[-1] == (
        f"└─ {report}  Report  canceled: {build} completed"
    )


async def test_a_cycle_in_a_batch_names_the_file_and_the_requests(cli: Cli, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "flow.jsonl", {"name": "a", "after": ["b"]}, {"name": "b", "after": "a"}
    )
    done = await cli("submit", "--batch", path, "--unchecked")
    done.refused(2, f"{path}: lines 1 to 2: after: these requests wait for each other: a -> b -> a")


async def test_later_lines_of_a_long_file_name_earlier_ones(
    cli: Cli, tmp_path: Path, rt: Runtime
) -> None:
    requests = [{"name": f"s{n}", "after": [f"s{n - 1}"] if n else []} for n in range(1200)]
    path = lines(tmp_path / "flow.jsonl", *requests)
    done = await cli("submit", "--batch", path, "--unchecked")
    names = [text.split()[0] for text in done.out.splitlines()]
    tree = await rt.workflows.tree(int(names[0].removeprefix("D-")))
    assert (len(names), tree.total, len(tree.jobs)) == (1200, 1200, 1000)
    shown = (await cli("show", names[0], "--tree")).out.splitlines()
    assert (len(shown), shown[-1]) == (1001, "and 200 more jobs")


async def test_a_tree_is_canceled_after_a_question(
    cli: Cli, make: Factory, rt: Runtime, terminal: Callable[..., Terminal]
) -> None:
    root = await make.queued()
    child = await make.queued(after=(root,), on="failure")
    screen = terminal("cancel", f"D-{root}", "--tree")
    screen.expect(f"Cancel D-{root} and the job that waits for it? Work so far is kept. [y/N]")
    screen.type("\n")
    assert screen.end() == 1
    done = await cli("cancel", root, "--tree", "--json", "--reason", "wrong")
    assert [job["number"] for job in done.json] == [root, child]
    assert (await rt.read_model.job(child)).status is Status.CANCELED
    (await cli("cancel", root, "--tree")).refused(
        1, f"D-{root} and all that wait for it have ended"
    )


async def test_a_retry_says_how_many_jobs_wait_for_it(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await make.queued(after=(work.number,))
    await rt.settlement.failure(work, Failure("broken", declared="PERMANENT"))
    done = await cli("retry", work.name)
    name = done.out.split()[-1]
    assert done.err == f"1 job waits for it: draftsman show {name} --tree\n"
    (await cli("retry", "--status", "failed", "--alone")).refused(2, "--alone cannot be combined")


async def test_a_tree_with_a_job_of_another_person_is_canceled_by_an_operator_only(
    as_: As, make: Factory
) -> None:
    root = await make.queued()
    await make.queued(after=(root,))
    (await as_("ben")("cancel", root, "--tree")).refused(1, "may not cancel", "olga")
