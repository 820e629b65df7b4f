"""The output of handlers goes to the log of their own run, and nowhere else."""

# ruff: noqa: T201 - the tests are about printing
from __future__ import annotations

import asyncio
import io
import logging
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import pytest

from draftsman import Done, Outcome, RunContext
from draftsman.handlers import run_log as print_capture
from draftsman.handlers.run_log import CHUNK, TRUNCATION_MARK, PrintCapture
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.worker.workers import (
    before_deadline,
    running_worker,
    runtime_with,
    wait_for_end,
    wait_for_status,
)

S = Status


@contextmanager
def screen() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Yield a stand-in for the worker's standard streams; the worker restores both."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        yield out, err
        assert (sys.stdout, sys.stderr) == (out, err)


async def log_of(rt: Runtime, number: int) -> str:
    return "".join(chunk.text for chunk in await rt.checkpoints.logs(number))


async def test_printed_lines_of_a_handler_are_in_its_log_in_order(
    rt: Runtime, make: Factory
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        print("one,", "two")
        ctx.log("three")
        print("four", file=sys.stderr)
        sys.stdout.writelines(["fi", "ve\n"])
        await asyncio.to_thread(print, "six, in a thread")
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(print, "seven, in a thread of a task"))
        assert not sys.stdout.isatty()
        sys.stdout.flush()
        try:
            raise ValueError("caught")
        except ValueError:
            traceback.print_exc()
        print("the password=hunter2 of the mill")
        print("10 %\r20 %\r30 %\r", flush=True)
        print("no end", end="")
        return Done({})

    number = await make.queued(type="it", queue="default")
    with screen() as (out, err):
        async with running_worker(runtime_with(rt), {"it": handler}):
            assert (await wait_for_end(rt, number)).status is S.COMPLETED
            print("the worker itself")
            print("says so", file=sys.stderr)
    lines = (await log_of(rt, number)).splitlines()
    assert lines[:6] == [
        *("one, two", "three", "four", "five"),
        *("six, in a thread", "seven, in a thread of a task"),
    ]
    assert lines[6] == "Traceback (most recent call last):"
    assert lines[-4:] == [
        *("ValueError: caught", "the password=*** of the mill", "30 %", "no end"),
    ]
    assert (out.getvalue(), err.getvalue()) == ("the worker itself\n", "says so\n")


async def test_records_of_a_handler_are_in_its_log_with_their_level(
    rt: Runtime, make: Factory
) -> None:
    logger = logging.getLogger("shop.prices")
    logger.setLevel(logging.INFO)

    async def handler(ctx: RunContext) -> Outcome:
        logger.info("%d prices of the password=hunter2 mill", 3)
        await asyncio.to_thread(logger.warning, "in a thread")
        logging.getLogger("draftsman.worker").warning("of the worker")
        try:
            raise ValueError("caught")
        except ValueError:
            logger.exception("failed")
        logger.debug("below its level")
        return Done({})

    number = await make.queued(type="it", queue="default")
    async with running_worker(runtime_with(rt), {"it": handler}):
        assert (await wait_for_end(rt, number)).status is S.COMPLETED
        logger.warning("outside of runs")
    lines = (await log_of(rt, number)).splitlines()
    assert lines[:3] == [
        "INFO shop.prices: 3 prices of the password=*** mill",
        "WARNING shop.prices: in a thread",
        "ERROR shop.prices: failed",
    ]
    assert lines[3:4] + lines[-1:] == ["Traceback (most recent call last):", "ValueError: caught"]


async def test_lines_printed_before_a_question_are_in_the_log_of_that_run(
    rt: Runtime, make: Factory
) -> None:
    async def handler(ctx: RunContext) -> Outcome:
        print("run", ctx.job.run, end="")
        await ctx.ask("go", "Go on?", choices=["yes"])
        return Done({})

    number = await make.queued(type="it", queue="default")
    async with running_worker(runtime_with(rt), {"it": handler}):
        await wait_for_status(rt, number, S.WAITING_FOR_INPUT)
        await make.answer(number, "yes")
        await wait_for_end(rt, number)
    chunks = await rt.checkpoints.logs(number)
    assert [(chunk.run, chunk.text) for chunk in chunks] == [(1, "run 1\n"), (2, "run 2\n")]


async def test_logs_of_concurrent_runs_and_of_the_worker_do_not_mix(
    rt: Runtime, make: Factory
) -> None:
    over = asyncio.Event()
    both = asyncio.Barrier(2)
    tasks: list[asyncio.Task[None]] = []

    async def late() -> None:
        await over.wait()
        print("after the end")

    async def handler(ctx: RunContext) -> Outcome:
        for line in range(3):
            await both.wait()
            print(ctx.job.name, "a", line)
            await asyncio.to_thread(print, ctx.job.name, "b", line)
        logging.getLogger("draftsman.mine").error("a line of the worker's log")
        tasks.append(asyncio.create_task(late()))
        raise RuntimeError("on purpose")

    numbers = [await make.queued(type="it", queue="default") for _ in range(2)]
    with screen() as (out, err):
        own = logging.StreamHandler(sys.stderr)
        logging.getLogger("draftsman").addHandler(own)
        try:
            async with running_worker(runtime_with(rt), {"it": handler}):
                for number in numbers:
                    await wait_for_status(rt, number, S.RETRYING)
                over.set()
                await before_deadline(asyncio.gather(*tasks))
        finally:
            logging.getLogger("draftsman").removeHandler(own)
    for number in numbers:
        own_lines = [f"D-{number} {which} {line}" for line in range(3) for which in "ab"]
        lines = (await log_of(rt, number)).splitlines()
        assert lines[:7] == [*own_lines, "Traceback (most recent call last):"]
    assert out.getvalue() == "after the end\n" * 2  # a finished run captures no more output
    assert err.getvalue().count("a line of the worker's log") == 2
    assert err.getvalue().count("RuntimeError: on purpose") == 2


async def test_a_thread_that_prints_endlessly_is_blocked_and_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(print_capture, "MAX_WAITING", 100)
    monkeypatch.setattr(print_capture, "ROOM_TIMEOUT", 0.01)
    chunks: list[str] = []
    printed = PrintCapture(chunks.append, asyncio.get_running_loop())
    threads = [threading.Thread(target=_flood, args=(printed,)) for _ in range(2)]
    with printed:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()  # the event loop reads no output in this time
    text = "".join(chunks)
    assert TRUNCATION_MARK in text
    assert len(text) < 100 + 3 * len(TRUNCATION_MARK) + 20
    assert not printed.write("out", "after the end")


def _flood(printed: PrintCapture) -> None:
    for _ in range(30):
        printed.write("out", "y" * 9 + "\n")


async def test_an_endless_line_is_split() -> None:
    chunks: list[str] = []
    with PrintCapture(chunks.append, asyncio.get_running_loop()) as printed:
        for _ in range(3):
            printed.write("out", "x" * CHUNK)
        printed.write("out", "\rdrawn again\n")
    assert [len(text) for text in chunks[:-1]] == [2 * CHUNK + 1]
    assert chunks[-1] == "drawn again\n"
