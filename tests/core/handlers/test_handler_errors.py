"""Programming errors of handlers fail at once; errors that data may cause are retried."""

from __future__ import annotations

import ast
import asyncio
import importlib
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from draftsman import Choice, Done, Outcome, RunContext
from draftsman.errors import Failure
from draftsman.handlers import handler_errors
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    CapturedLog,
    last_event,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)
from tests.support.cases import cases

S = Status
HERE = Path(__file__).name
CHOICE: Any = Choice
"""Take no context, unlike the type of handlers."""
NOTHING: Any = None
LIBRARY = "import json\ndef parse(text):\n    return json.loads(text)['items'].pop()\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an installed third-party library."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "some_library.py").write_text(LIBRARY)
    (folder / "some_broken.py").write_text("def (:\n")
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module("some_library")
    sys.modules.pop("some_library")


def raised(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError


@cases(
    "call",
    [
        lambda: CHOICE("a", "b"),
        lambda: Choice(value="x" * 200),
        lambda: NOTHING["items"],
        lambda: NOTHING.items,
        lambda: "1" + cast(Any, 1),
        lambda: json.dumps({1, 2}),
        lambda: missing_name,  # type: ignore[name-defined] # noqa: F821
        lambda: importlib.import_module("there_is_no_such_module"),
    ],
)
def test_an_error_of_the_handlers_own_code_is_a_programming_error(
    call: Callable[[], object],
) -> None:
    assert (handler_errors.find_error_location(raised(call), __name__) or "").startswith(f"{HERE}:")


@cases(
    "call",
    [
        lambda: dict[str, int]()["items"],
        lambda: int("x"),
        lambda: [][1],
        lambda: ast.literal_eval("{bad"),
        lambda: json.loads("{bad"),
        lambda: 1 / 0,
    ],
)
def test_an_error_that_data_may_cause_is_no_programming_error(call: Callable[[], object]) -> None:
    assert handler_errors.find_error_location(raised(call), __name__) is None


def test_a_traceback_begins_in_the_code_of_the_handler() -> None:
    ours = dict[str, Any](__name__="draftsman.worker.run")
    exec("def call(handler):\n    handler()", ours)

    def handler() -> None:
        int("x")

    for called, functions in ((handler, ["handler"]), (None, ["call"])):
        error = raised(partial(ours["call"], called))
        assert error.__traceback__ is not None
        error = error.with_traceback(error.__traceback__.tb_next)
        details = handler_errors.failure_details(error, Failure("failed")) or ""
        assert re.findall(r"line \d+, in (\w+)", details) == functions


def test_an_assertion_error_is_no_programming_error() -> None:
    def check() -> None:
        assert not HERE

    assert handler_errors.find_error_location(raised(check), __name__) is None


def test_an_error_inside_a_library_is_no_programming_error(library: Any) -> None:
    error = raised(lambda: library.parse("[]"))  # list indices must be integers
    assert isinstance(error, TypeError)
    assert handler_errors.find_error_location(error, __name__) is None
    assert handler_errors.find_error_location(error, "some_library.handlers") == "some_library.py:3"
    assert handler_errors.find_error_location(raised(lambda: library.parse(5)), __name__) is None


@pytest.mark.usefixtures("library")
def test_a_syntax_error_is_a_programming_error_in_any_file() -> None:
    error = raised(lambda: importlib.import_module("some_broken"))
    assert (handler_errors.find_error_location(error, __name__) or "").startswith(f"{HERE}:")


def test_a_group_is_a_programming_error_if_each_of_its_errors_is() -> None:
    wrong = raised(lambda: NOTHING.items)
    data = raised(lambda: int("x"))
    assert handler_errors.find_error_location(
        ExceptionGroup("", [wrong, ExceptionGroup("", [wrong])]), __name__
    )
    assert handler_errors.find_error_location(ExceptionGroup("", [wrong, data]), __name__) is None


def test_an_error_of_a_built_in_handler_is_no_programming_error() -> None:
    source = compile("def f(x): return x['choices']", "/draftsman/handlers/x.py", "exec")
    space: dict[str, Any] = {"__name__": "draftsman.handlers.x"}
    exec(source, space)
    error = raised(lambda: space["f"](None))
    assert handler_errors.find_error_location(error, "draftsman.handlers.x") is None
    assert handler_errors.find_error_location(error, __name__) is not None


async def ask_with_invalid_choices(ctx: RunContext) -> Outcome:
    await ctx.ask("pick", "Which?", choices=[CHOICE("a", "b")])
    return Done({})


async def sleep_with_invalid_time(ctx: RunContext) -> Outcome:
    await ctx.sleep("nap", cast(Any, "soon"))
    return Done({})


async def without_context() -> Outcome:
    return Done({})


async def raise_in_task(ctx: RunContext) -> Outcome:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(lambda: NOTHING.items))
    return Done({})


@pytest.mark.parametrize(
    ("handler", "message", "has_place"),
    [
        (ask_with_invalid_choices, "positional argument", True),
        (sleep_with_invalid_time, "TypeError: ", True),
        (without_context, "takes 0 positional arguments but 1 was given", False),
        (raise_in_task, "unhandled errors in a TaskGroup", True),
    ],
)
async def test_a_programming_error_fails_the_job_at_once_with_the_traceback_in_its_log(
    rt: Runtime,
    make: Factory,
    caplog: pytest.LogCaptureFixture,
    handler: Handler,
    message: str,
    has_place: bool,
) -> None:
    captured = CapturedLog(caplog)
    number = await make.queued(type="it", queue="default")
    async with running_worker(runtime_with(rt), {"it": handler}):
        job = await wait_for_end(rt, number)
    assert (job.status, job.error_class, job.run_count) == (S.FAILED, "PERMANENT", 1)
    assert message in (job.last_error or "")
    assert (f"({HERE}:" in (job.last_error or "")) == has_place
    log = "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
    assert "Traceback (most recent call last):" in log
    assert handler.__name__ in log
    assert captured.lines(f"D-{number} failed: ")
    event = await last_event(rt, number, "job_failed")
    assert event.payload["code"] == "programming_error"


async def test_the_worker_logs_failed_for_the_final_failure_only(
    rt: Runtime, make: Factory, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        raise ValueError("no luck")

    captured = CapturedLog(caplog)
    number = await make.queued(type="it", queue="default", max_attempts=2)
    last = await make.queued(type="it", queue="default", max_attempts=1)
    async with running_worker(runtime_with(rt), {"it": handler}):
        job = await wait_for_status(rt, number, S.RETRYING)
        await wait_for_end(rt, last)
    assert job.next_retry_at is not None
    when = f"{job.next_retry_at:%Y-%m-%dT%H:%M:%SZ}"
    assert captured.lines(f"D-{number}") == [
        f"D-{number}: run 1 failed; attempt 2 of 2, retry 1 of 3 at {when}: ValueError: no luck"
    ]
    assert captured.lines(f"D-{last}") == [
        f"D-{last} failed (attempt 1 of 1, retry 0 of 3; dead letter): ValueError: no luck"
    ]
    levels = [
        record.levelname
        for record in caplog.records
        if record.name == "draftsman.jobs.runs.service.settlement"
    ]
    assert sorted(levels) == ["ERROR", "WARNING"]
