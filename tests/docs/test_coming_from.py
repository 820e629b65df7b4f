"""The page for those who come from another library: ours runs, and is no longer than theirs."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.job_types import declaration
from draftsman.job_types.app import handlers_of
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_question,
)
from tests.docs.pages import DOCS

PAGE: Final = (DOCS / "coming-from.md").read_text(encoding="utf-8")
LIBRARIES: Final = ("Celery", "procrastinate", "RQ", "APScheduler", "Temporal")
TASKS: Final = (
    "send later",
    "retry with backoff",
    "periodic",
    "fan out and collect",
    "wait for a person",
)
IMPORTS: Final = "from draftsman import BlockingRunContext, Every, job\n"


def examples(library: str) -> dict[str, str]:
    """Return the code of the section of a library, by task."""
    section = PAGE.split(f"\n## {library}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```python\n# ([^\n]+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return dict(blocks)


def lines(code: str) -> int:
    """Return the number of lines with code."""
    return sum(bool(line.strip()) for line in code.splitlines())


@pytest.fixture
def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import our examples, without the submission, as a module with the functions they call."""
    monkeypatch.setattr(declaration, "declared_types", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "\n".join(examples("draftsman").values())
    code = "\n".join(line for line in code.splitlines() if "with_options" not in line)
    stand_ins = "sent = []\nsend = charge = sent.append\nfetch = str\n\ndef write_report(): ...\n"
    (tmp_path / "coming.py").write_text(f"{IMPORTS}{stand_ins}{code}\n", encoding="utf-8")
    yield __import__("coming")
    del sys.modules["coming"]


def test_each_library_has_each_task_in_no_fewer_lines_than_draftsman() -> None:
    ours = examples("draftsman")
    assert tuple(ours) == TASKS
    for library in LIBRARIES:
        theirs = examples(library)
        assert tuple(theirs) == TASKS, library
        for task, code in theirs.items():
            compile(code, library, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            assert lines(ours[task]) <= lines(code), (library, task)


async def test_our_examples_run(rt: Runtime, make: Factory, company: Any) -> None:
    payloads: dict[str, dict[str, Any]] = {
        "mail:welcome": {"address": "anna@example.org"},
        "invoice:pay": {"invoice": 17},
        "report:daily": {},
        "page:total": {"urls": ["a", "bb"]},
        "order:ship": {"order": 7},
    }
    handlers = handlers_of(declaration.declared_types, {})
    jobs = {
        name: await make.queued(type=name, queue="default", payload=payload)
        for name, payload in payloads.items()
    }
    async with running_worker(runtime_with(rt), handlers, slots=8, leader=True):
        await wait_for_question(rt, jobs["order:ship"])
        await make.answer(jobs["order:ship"], "yes")
        results = {name: (await wait_for_end(rt, number)).result for name, number in jobs.items()}
    assert results == {
        "mail:welcome": {},
        "invoice:pay": {},
        "report:daily": {},
        "page:total": {"value": 3},
        "order:ship": {"value": True},
    }
    assert sorted(map(str, company.sent)) == ["17", "anna@example.org"]
