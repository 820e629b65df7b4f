"""Job types in processes of their own: another process imports this module."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from enum import Enum
from pathlib import Path
from typing import Any

from draftsman import (
    Answered,
    Ask,
    BlockingRunContext,
    ClaimedJob,
    Failure,
    Person,
    SecretName,
    Snooze,
    job,
    middleware,
)
from draftsman.handlers.blocking_context import RunInterrupted


@job("process:story", isolation="process", title="Story of {name}")
def story(ctx: BlockingRunContext, name: str, effects: str) -> dict[str, Any]:
    def effect(invocation: str) -> str:
        with Path(effects).open("a", encoding="utf-8") as file:
            file.write(f"{invocation}\n")
        return name.upper()

    upper = ctx.step("upper", effect)
    print("step", upper)  # noqa: T201 - output of a handler
    sys.stderr.write("half a line")
    answer = ctx.ask("color", "Which?", choices=["red", "blue"])
    assert isinstance(answer, Answered)
    ctx.checkpoint({"color": answer.value})
    ctx.log("logged")
    return {"name": upper, "color": answer.value, "saved": ctx.saved(), "pid": os.getpid()}


@job("process:ends", isolation="process", memory_mb=256)
def ends(ctx: BlockingRunContext, way: str) -> Any:
    match way:
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "system exit":
            sys.exit(3)
        case "failure":
            raise Failure("the bank said no", declared="PERMANENT")
        case "mistake":
            return len(3)  # type: ignore[arg-type]
        case "step":
            return ctx.step("wrong", lambda _: {"other": 1}["key"])
        case "usage":
            return ctx.ask("x", "")
        case "memory":
            return len(bytearray(1 << 30))
        case "unpicklable":
            return threading.Lock()
        case "snooze":
            return Snooze(0.01) if ctx.job.run == 1 else ctx.job.run
    return None


@job("process:computes", isolation="process", timeout=0.5)
def computes(ctx: BlockingRunContext, pids: str, stubborn: bool = False) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    Path(pids).write_text(f"{os.getpid()} {child.pid}", encoding="utf-8")
    while True:
        try:
            time.sleep(0.01)
        except RunInterrupted:
            if not stubborn:
                raise


@job("process:threads", isolation="process")
def threads(ctx: BlockingRunContext) -> list[str]:
    def work(n: int) -> None:
        results[n] = ctx.step(f"step-{n}", lambda _: f"{n}")

    results: dict[int, str] = {}
    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [results[n] for n in range(8)]


class Color(Enum):
    RED = "red"
    BLUE = "blue"


SPAN: ContextVar[tuple[str, int] | None] = ContextVar("SPAN", default=None)


@middleware
def spanned(job: ClaimedJob) -> Iterator[None]:
    SPAN.set((job.name, os.getpid()))
    yield


@job("process:secret", isolation="process")
def reads_secret(ctx: BlockingRunContext, key: SecretName) -> int:
    """Read a secret."""
    sys.stdout.write(f"the value of {key} is {key.value}\n")
    return len(key.value)


@job("process:plans", isolation="process")
def plans(ctx: BlockingRunContext) -> dict[str, Any]:
    """Ask with types, and use what is the same in each run."""
    before = [ctx.now().isoformat(), ctx.random.random(), str(ctx.uuid())]
    for n in range(2):
        ctx.step("twice", lambda _, n=n: n)  # type: ignore[misc]
    color, who, week = ctx.ask_all(
        Ask("color", f"Which, at {before}?", type=Color),
        Ask("who", "Who?", type=Person),
        Ask("week", "Which week?", type=int, default=31, on_expire="default", expires_in=0.001),
    )
    assert isinstance(color, Answered)
    assert isinstance(who, Answered)
    assert isinstance(week, Answered)
    answers = [color.value is Color.BLUE, who.value.name, week.value]
    is_spanned = SPAN.get() == (ctx.job.name, os.getpid())
    return {"answers": answers, "before": before, "is_spanned": is_spanned}
