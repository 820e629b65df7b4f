"""The page for authors of handlers: its examples run, and it is complete."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

import draftsman
from draftsman import Done, RunContext
from draftsman.handlers import registry
from draftsman.handlers.registry import Handler
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.job import Job, Status
from draftsman.runtime import Runtime
from draftsman.testing import run_handler
from draftsman.worker import leader
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.waits import until
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
    wait_for_status,
)
from tests.docs.pages import DOCS

S = Status
PAGE: Final = (DOCS / "handlers.md").read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
KEYS: Final = ["deploy", "note", "where"]
MISSING: Final = "name: is required"
ENDED: Final[dict[str, tuple[Status, dict[str, Any]]]] = {
    "greet": (S.COMPLETED, {"text": "Hello, Anna"}),
    "wait_for_file": (S.COMPLETED, {"runs": 2}),
    "charge": (S.FAILED, {}),
    "mistaken": (S.FAILED, {}),
    "describe": (S.COMPLETED, {"name": "D-5", "title": "Mill", "tags": ["a"]}),
    "chatty": (S.COMPLETED, {}),
    "deploy": (
        S.COMPLETED,
        {"deployed": True, "by": ["dave"]},
    ),
    "plan": (S.COMPLETED, {"plan": "us in week 32, by dave until November"}),
    "review": (
        S.COMPLETED,
        {"color": "red", "size": "large", "note": "none", "fine": "yes", "approved": True},
    ),
    "lottery": (S.COMPLETED, {"answer": "yes", "questions_asked_again": 0}),
    "nap": (S.COMPLETED, {"awake": True}),
    "collect": (S.COMPLETED, {}),
    "sizes": (S.COMPLETED, {"sizes": {}}),
    "greet_all": (S.COMPLETED, {"texts": ["Hello, Anna", "Hello, Ben"]}),
    "send_pages": (S.COMPLETED, {"first": "sent", "count": 1, "pages": 3}),
    "report": (S.COMPLETED, {"deliveries": 1}),
    "count_up": (S.COMPLETED, {"counted": 3}),
    "build": (
        S.COMPLETED,
        {
            "problem": "name: is required",
            "known": False,
            "log": "info",
            "built": True,
            "call": 120.0,
        },
    ),
    "version": (S.COMPLETED, {"version": draftsman.__version__}),
}
"""The examples of the page in order, with the final status of their jobs."""


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Handler]]:
    """Return the handlers of the page, imported from a module for each block as a worker does."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(leader, "TICK", 0.1)
    paths = {}
    for place, block in enumerate(BLOCKS):
        module = f"handlers_page_{place}"
        (tmp_path / f"{module}.py").write_text(block, encoding="utf-8")
        for name in re.findall(r"^async def (\w+)\(ctx", block, re.MULTILINE):
            paths[name] = f"{module}:{name}"
    yield registry.load(paths)
    for place in range(len(BLOCKS)):
        sys.modules.pop(f"handlers_page_{place}", None)


async def test_every_example_runs_with_the_documented_result(
    rt: Runtime, make: Factory, people: People, examples: dict[str, Handler]
) -> None:
    assert [name for name in examples if name not in registry.BUILT_IN] == list(ENDED)
    jobs = {name: await submitted(make, name) for name in ENDED}
    unwanted = await make.queued(type="wait_for_file", queue="default", payload={"obsolete": 1})
    busy = await make.queued(type="charge", queue="default", payload={"amount": 5})
    async with running_worker(runtime_with(rt), examples, slots=20, leader=True):
        await wait_for_question(rt, jobs["deploy"])
        await make.answer(jobs["deploy"], "eu")
        await wait_for_question(rt, jobs["deploy"], 3)
        await make.decide(jobs["deploy"], True, people.dave, n=3)
        await wait_for_question(rt, jobs["lottery"])
        await make.answer(jobs["lottery"], "yes")
        for question, answer in enumerate(["31", "us", "2026-11-30", "dave"], 1):
            await wait_for_question(rt, jobs["plan"], question)
            await make.answer(jobs["plan"], answer, n=question)
        for question, answer in {1: "red", 2: "large", 3: "none", 4: "", 6: "yes"}.items():
            await until(partial(_is_open, rt, jobs["review"], question), "the question")
            if answer:
                await make.answer(jobs["review"], answer, n=question)
            else:
                await make.decide(jobs["review"], True, people.dave, n=question)
        jobs_by_name = {name: await wait_for_end(rt, number) for name, number in jobs.items()}
        assert (await wait_for_end(rt, unwanted)).status is S.CANCELED
        waits = await wait_for_status(rt, busy, S.RETRYING)
    assert {name: (job.status, job.result or {}) for name, job in jobs_by_name.items()} == ENDED
    assert (waits.last_error, waits.retry_count) == ("the bank is busy", 1)
    await check_failures(rt, jobs_by_name)
    assert await log_of(rt, jobs["greet"]) == "greeting Anna\n"
    assert await log_of(rt, jobs["chatty"]) == "one\ntwo\nthree\n"
    assert await log_of(rt, jobs["build"]) == "compiling\n"
    assert "nobody wrote a note\n" in await log_of(rt, jobs["deploy"])
    files = await artifact_kinds(rt, jobs["report"]) | await artifact_kinds(rt, jobs["build"])
    assert files == {"mill.txt": "report", "changes.patch": "patch"}


async def _is_open(rt: Runtime, number: int, question: int) -> bool:
    return question in {item.ordinal for item in await rt.questions.open(number)}


async def submitted(make: Factory, name: str) -> int:
    payload = {"name": "Anna", "amount": 0}
    return await make.queued(type=name, queue="default", payload=payload, title="Mill", tags=("a",))


async def check_failures(rt: Runtime, jobs: dict[str, Job]) -> None:
    """Check the errors of the jobs that must fail."""
    assert jobs["charge"].last_error == "the amount is not positive"
    mistaken = jobs["mistaken"]
    assert (mistaken.error_class, mistaken.run_count) == ("PERMANENT", 1)
    assert (mistaken.last_error or "").startswith("TypeError: ")
    assert "Traceback" in await log_of(rt, mistaken.number)


async def log_of(rt: Runtime, number: int) -> str:
    return "".join(chunk.text for chunk in await rt.checkpoints.logs(number))


async def artifact_kinds(rt: Runtime, number: int) -> dict[str, str]:
    return {artifact.name: artifact.kind for artifact in await rt.checkpoints.artifacts(number)}


def public(names: Iterable[str]) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_context_has_the_21_members_of_the_page_and_each_has_an_example() -> None:
    rows = "".join(re.findall(r"^\| (`(?:await )?ctx\..*?) \|", PAGE, re.MULTILINE))
    table = re.findall(r"`(?:await )?ctx\.(\w+)", rows)
    used = set(re.findall(r"\bctx\.(\w+)", "\n".join(BLOCKS)))
    assert len(public(dir(RunContext))) == 21
    assert public(dir(RunContext)) == set(table) == used


async def test_the_context_of_handlers_under_test_has_the_same_members() -> None:
    async def handler(ctx: RunContext) -> Done:
        await ctx.usage({"input_tokens": 1})
        return Done({"members": sorted(public(dir(ctx))), "canceled": ctx.canceled})

    result = await run_handler(handler)
    members = sorted(public(dir(RunContext)))
    assert result.outcome == Done({"members": members, "canceled": False})
    assert result.usage == {"input_tokens": 1}


def test_every_member_of_the_workers_side_on_the_page_has_an_example() -> None:
    rows = PAGE.split("## The worker's side of a run")[1].split("```python")[0]
    names = re.findall(r"^\| (`.*?`(?:, `.*?`)*) \|", rows, re.MULTILINE)
    listed = set(re.findall(r"`(?:await )?(\w+)[(`]", "\n".join(names)))
    assert listed == set(re.findall(r"\brun\.(\w+)", "\n".join(BLOCKS)))
    assert listed <= public(dir(WorkerRun)) | {"limits", "deadline"}


def test_every_exported_name_is_used_by_an_example() -> None:
    code = "\n".join(
        [
            *BLOCKS,
            *((DOCS / page).read_text(encoding="utf-8") for page in ("python.md", "own-jobs.md")),
        ]
    )
    assert [name for name in draftsman.__all__ if not re.search(rf"\b{name}\b", code)] == []
