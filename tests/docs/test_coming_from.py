"""The page for those who come from another library: ours runs, and is no longer than theirs."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman import BlockingRunContext, job
from draftsman.job_types import declaration
from draftsman.job_types.declaration import JobType
from draftsman.job_types.submission import SubmitOptions, SubmittedJobOf
from draftsman.testing import WorkerApp
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
READER: Final = """
from draftsman import BlockingRunContext, Every, job

sent = []
send, fetch = sent.append, str


def charge(invoice):
    sent.append(invoice if sent else "failed")
    if sent == ["failed"]:
        raise ConnectionError


def write_report(): ...


"""
"""What the examples call of the reader's own programs."""


def examples(library: str) -> dict[str, str]:
    """Return the code of the section of a library, by task."""
    section = PAGE.split(f"\n## {library}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```python\n# ([^\n]+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return dict(blocks)


def table(library: str) -> list[tuple[str, str]]:
    """Return the rows of the table of a library: theirs, and ours."""
    section = PAGE.split(f"\n## {library}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \|$", section, re.MULTILINE)
    assert rows[0] == (library, "draftsman")
    return rows[1:]


def lines(code: str) -> int:
    """Return the number of lines with code."""
    return sum(bool(line.strip()) for line in code.splitlines())


@pytest.fixture
def company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draftsman_worker: WorkerApp
) -> Iterator[Any]:
    """Import our examples as a module with the functions they call; the first payment fails."""
    monkeypatch.setattr(declaration, "declared_types", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "\n".join(examples("draftsman").values())
    (tmp_path / "coming.py").write_text(f"{READER}{code}\n", encoding="utf-8")
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


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_table_has_arguments_and_methods_of_ours(library: str) -> None:
    arguments = {*inspect.signature(job).parameters, *SubmitOptions.__annotations__}
    arguments |= {
        *inspect.signature(SubmittedJobOf.result).parameters,
    }
    for _, ours in table(library):
        for code in re.findall(r"`([^`]+)`", ours):
            for argument in re.findall(r"(\w+)=", code):
                assert argument in arguments, code
            for method in re.findall(r"ctx\.(\w+)", code):
                assert hasattr(BlockingRunContext, method), code
            if re.fullmatch(r"\w\w+", code):
                known = (job, JobType, BlockingRunContext, SubmittedJobOf)
                assert (
                    code in arguments
                    or any(hasattr(each, code) for each in known)
                    or (code in {"misfire", "overlap", "draftsman"})
                ), code


def test_our_examples_run(draftsman_worker: WorkerApp, company: Any) -> None:
    draftsman_worker.answers["go"] = "yes"
    paid = company.pay.submit(17)
    total = company.total.submit(["a", "bb"])
    shipped = company.ship.submit(order=7)
    assert shipped.result() is True
    assert (total.result(), paid.result()) == (3, None)
    assert company.sent == ["failed", 17]
    draftsman_worker.advance(3601)
    draftsman_worker.drain()
    assert company.sent[2:] == ["anna@example.org"]
    assert draftsman_worker.submitted("report:daily") == []
    draftsman_worker.advance(86_400)
    draftsman_worker.drain()
    assert draftsman_worker.submitted("report:daily") == [{}]
