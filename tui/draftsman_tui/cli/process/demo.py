"""The `demo` command: a job on a real repository, from the request to the branch."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman import __version__
from draftsman.domain.ids import actor_name, job_name
from draftsman.errors import AnswerTimeout, DraftsmanError, UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.prompts import prompt
from draftsman_tui.common.output import CommandOutput, line, one_line, styled
from draftsman_tui.common.own_command import DRAFTSMAN_COMMAND, start_process

if TYPE_CHECKING:
    from draftsman.domain.event import Event
    from draftsman.domain.job import Job
    from draftsman.domain.people.actor import Actor
    from draftsman.domain.question import Question
    from draftsman.runtime import Runtime

ANSWER: Final = "safe fixes"
KILL_AT: Final = "job_started"
"""Event kind at which --kill kills the worker: the start of the run that applies the answer."""
HIDDEN: Final = frozenset({"job_claimed", "answer_received"})
TIMEOUT: Final = 120
"""Maximum number of seconds without an event."""


class Demo:
    """A demo with its own queue, worker and job."""

    def __init__(
        self, runtime: Runtime, out: CommandOutput, actor: Actor, config: Path | None
    ) -> None:
        self._runtime = runtime
        self._out = out
        self._actor = actor
        self._config = config
        self._queue = f"demo-{os.getpid()}"
        self._began = time.time()
        self._worker: Process | None = None
        self._log: Path

    async def run(self, repo: Path, answer: str | None, *, kill: bool) -> int:
        """Run the job and return its number; `kill` kills its worker during the run."""
        self._log = Path(tempfile.mkstemp(prefix="draftsman-demo-", suffix=".log")[1])
        submitting = asyncio.create_task(self._submit(repo))
        try:
            number = await asyncio.shield(submitting)
            async with self._running_worker():
                async for event in self._events(number):
                    self._show(event)
                    if event.to_status == "waiting_for_input":
                        await self._answer(number, answer)
                    elif kill and event.kind == KILL_AT and (event.run or 0) > 1:
                        kill = False
                        await self._kill()
        except DraftsmanError:
            await self._cancel(await submitting)
            raise
        except asyncio.CancelledError:
            await self._cancel(await submitting)
            self._log.unlink()
            raise
        return number

    def info(self, label: str, text: str, style: str = "", at: float | None = None) -> None:
        """Print a step with the seconds since the start; `at` is a Unix time, by default now."""
        if self._out.json:
            return
        seconds = f"{max(0.0, (at or time.time()) - self._began):6.1f} s  "
        self._out.print(line(styled(seconds, "dim"), styled(f"{label:<10}", style), text))

    async def _cancel(self, number: int) -> None:
        """Cancel the job, since no other worker serves the demo's queue."""
        reason = "the demo ended"
        await self._runtime.job_control.cancel(number, self._actor, reason, force=True)

    async def _submit(self, repo: Path) -> int:
        from draftsman.services.jobs.submissions import invocation

        request = invocation(
            type="run_agent",
            agent="tidy",
            repo=str(repo),
            queue=self._queue,
            title=f"Tidy up {repo.name}",
            tags=("demo",),
        )
        job = await self._runtime.submissions.submit(request, self._actor)
        self.info("request", f"tidy up {repo}", "bold")
        self.info("job", f"{job.name}, stored in PostgreSQL", "bold")
        return job.number

    @asynccontextmanager
    async def _running_worker(self) -> AsyncIterator[None]:
        await self._start_worker()
        try:
            yield
        finally:
            await self._stop_worker()

    async def _start_worker(self) -> None:
        config = ("--config", str(self._config)) if self._config else ()
        options = ("--queue", self._queue, "--slots", "1", "--parent", str(os.getpid()))
        with self._log.open("ab") as log:
            self._worker = await start_process(
                (*DRAFTSMAN_COMMAND, *config, "worker", *options), output=log
            )
        self.info("worker", f"started, pid {self._worker.pid}", "cyan")

    async def _stop_worker(self) -> None:
        if self._worker is None or self._worker.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._worker.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(30):
                await self._worker.wait()
        except TimeoutError:
            self._worker.kill()
            await self._worker.wait()

    async def _kill(self) -> None:
        """Kill the worker and start another, to show that no work is lost."""
        assert self._worker is not None  # noqa: S101 - it runs: its event was just read
        self._worker.kill()
        await self._worker.wait()
        self.info("kill -9", f"worker {self._worker.pid} killed during the run", "red")
        await self._start_worker()

    async def _events(self, number: int) -> AsyncIterator[Event]:
        """Yield events of the job; raises DraftsmanError if its worker exits or nothing happens."""
        events = self._runtime.read_model.follow(number)
        while True:
            next_event = asyncio.ensure_future(anext(events))
            for _ in range(TIMEOUT):
                await asyncio.wait({next_event}, timeout=1)
                if next_event.done():
                    break
                self._check_worker()
            else:
                next_event.cancel()
                why = await self._runtime.read_model.why(number)
                raise DraftsmanError(
                    f"{job_name(number)} is not making progress: {why.text};"
                    f" worker log: {self._log}"
                )
            try:
                yield await next_event
            except StopAsyncIteration:
                return

    def _check_worker(self) -> None:
        if self._worker is not None and self._worker.returncode is not None:
            log = self._log.read_text(encoding="utf-8", errors="replace").strip()
            last = log.rpartition("\n")[2] or f"exit code {self._worker.returncode}"
            raise DraftsmanError(f"the demo's worker exited: {last}; worker log: {self._log}")

    async def _answer(self, number: int, answer: str | None) -> None:
        """Answer the open questions; prompts again after an invalid answer."""
        for question in await self._runtime.questions.open(number):
            self._show_question(question)
            while not await self._submit_answer(question, answer):
                pass

    async def _submit_answer(self, question: Question, answer: str | None) -> bool:
        from draftsman.domain.response import Response

        prompted = answer is None and self._out.interactive
        text = _prompt(question) if prompted else answer or ANSWER
        response = Response(source_event_id=f"demo:{question.name}:{text}", text=text)
        try:
            verdict = await self._runtime.questions.answer(
                question.job, question.ordinal, response, self._actor
            )
        except UsageError as error:
            if not prompted:
                raise
            self.info("invalid", str(error), "red")
            return False
        self.info("answer", text if verdict.accepted else verdict.reason or "", "green")
        return True

    def _show_question(self, question: Question) -> None:
        if self._out.json:
            return
        self.info("question", f"{question.name}  {question.text}", "yellow")
        for number, choice in enumerate(question.choices, 1):
            description = f"  {choice['description']}" if choice.get("description") else ""
            label = styled(f"{number}  {choice['label']:<12}", "bold")
            self._out.print(line(f"{'':21}", label, description))

    def _show(self, event: Event) -> None:
        if self._out.json:
            self._out.item(event)
        elif event.kind not in HIDDEN:
            self.info(*_step(event), event.created_at.timestamp())


def _prompt(question: Question) -> str:
    try:
        return prompt("Your answer (number or name)", default="1")
    except click.Abort:
        click.echo(err=True)
        raise AnswerTimeout(
            f"{question.name} was not answered; the demo's job was canceled"
        ) from None


def _validation(payload: dict[str, Any]) -> str:
    outcome = "passed" if payload.get("passed") else "failed"
    return f"{payload['name']} {outcome}: {payload.get('summary', '')}"


def _sandbox(payload: dict[str, Any]) -> str:
    network = "network open" if payload.get("network") else "no network"
    weaker = "; weaker than bwrap: see draftsman doctor"
    warning = weaker if payload.get("mode") == "landlock" else ""
    return f"{payload.get('mode')}, {network}{warning}"


STEPS: Final[dict[str, tuple[str, str, Callable[[dict[str, Any]], str]]]] = {
    "job_created": ("queued", "cyan", lambda _: "waiting for a worker"),
    "job_started": ("run", "cyan", lambda _: "started in its own clone"),
    "repo_resolved": ("clone", "cyan", lambda payload: f"at {payload['base_sha'][:12]}"),
    "sandbox_applied": ("sandbox", "cyan", _sandbox),
    "iteration_started": (
        "agent",
        "cyan",
        lambda payload: f"{payload['agent']}, iteration {payload['iteration']}",
    ),
    "agent.validation_ran": ("validate", "cyan", _validation),
    "agent.command_executed": (
        "fix",
        "cyan",
        lambda payload: f"{payload['name']}: {payload.get('summary', '')}",
    ),
    "needs_input": ("parked", "yellow", lambda _: "waiting for an answer, without using a slot"),
    "job_resumed": ("resumed", "green", lambda payload: f"by {', '.join(payload.get('by', ()))}"),
    "job_released": ("rescued", "green", lambda _: "continues from its last checkpoint"),
    "branch_published": (
        "branch",
        "green",
        lambda payload: f"{payload['branch']} at {payload['commit'][:12]}",
    ),
    "job_completed": ("completed", "bold green", lambda _: ""),
}
"""Label, style and text of each event kind that is a step of the demo."""


def _step(event: Event) -> tuple[str, str, str]:
    if event.kind in STEPS:
        label, style, text = STEPS[event.kind]
        return label, text(event.payload), style
    detail = event.payload.get("error") or event.payload.get("reason") or ""
    return event.kind.removeprefix("job_")[:10], one_line(str(detail)), "red"


@command(
    "demo",
    examples=(
        "draftsman demo                            on a small sample repository",
        "draftsman demo --repo . --kill            on your repository, killing a worker",
        "draftsman demo --answer 'all fixes' | cat",
    ),
    long_running=True,
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    help="Path of a repository, which only gets a new branch; default: a small sample.",
)
@click.option("--answer", help=f"Answer to the question; without a terminal: {ANSWER!r}.")
@click.option("--kill", is_flag=True, help="Kill the worker with SIGKILL during the run.")
async def demo(app: App, repo: Path | None, answer: str | None, kill: bool) -> None:
    """Run an example job on a sample repository, no credentials needed.

    Exits with 0 only if the job completed.
    """
    from draftsman.shutdown import shutdown_signals

    if not app.json:
        app.out.print(styled(f"draftsman {__version__} demo", "bold"))
    async with shutdown_signals():
        status = await _demonstrate(app, repo, answer, kill=kill)
        if status != "completed":
            raise click.exceptions.Exit(1)
        return
    raise click.Abort


async def _demonstrate(app: App, repo: Path | None, answer: str | None, *, kill: bool) -> str:
    """Run the job and print its result; return its final status."""
    out = app.out
    async with app.runtime() as runtime, _repository(repo) as folder:
        demonstration = Demo(runtime, out, await runtime.actor(), app.config)
        health, _ = await runtime.read_model.health()
        server = "embedded, data is kept" if runtime.embedded else "the configured server"
        version = health.version.split()[0]
        demonstration.info("database", f"PostgreSQL {version}, {server}", "cyan")
        number = await demonstration.run(folder, answer, kill=kill)
        job = await runtime.read_model.job(number)
        if app.json:
            out.item(job)
        else:
            out.print(*_summary(job), *_timeline(await runtime.read_model.job_events(number)))
            out.print(*_next_steps(job, folder))
    return job.status


@asynccontextmanager
async def _repository(repo: Path | None) -> AsyncIterator[Path]:
    """Yield the repository; the sample is deleted only if the demo is interrupted."""
    from draftsman.handlers.clone.sample_repo import make_sample_repo

    if repo is None:
        folder = Path(tempfile.mkdtemp(prefix="draftsman-demo-"))
        try:
            await make_sample_repo(folder / "inventory")
            yield folder / "inventory"
        except asyncio.CancelledError:
            shutil.rmtree(folder)
            raise
        return
    path = repo.expanduser().resolve()
    if not path.is_dir():
        raise UsageError(f"{repo} is not a directory; use --repo with the path of a git repository")
    yield path


def _summary(job: Job) -> list[Any]:
    result = job.result or {}
    lines: list[Any] = ["", styled(f"{job.name} is {job.status}", "bold")]
    if job.last_error and job.status != "completed":
        lines.append(styled(job.last_error, "red"))
    if result.get("summary"):
        lines.append(str(result["summary"]))
    return [*lines, ""]


def _next_steps(job: Job, repo: Path) -> list[str]:
    branch = (job.result or {}).get("branch")
    lines = ["", "Next steps:"]
    if branch:
        lines.append(f"  git -C {repo} log --stat -1 {branch}")
    # `make demo` calls draftsman by its path, and the printed commands must work when copied
    program = sys.argv[0] if sys.argv[0].endswith("/draftsman") else "draftsman"
    command = "draftsman" if shutil.which("draftsman") else program
    return [*lines, *(f"  {command} {verb} {job.name}" for verb in ("show", "diff"))]


def _timeline(events: Sequence[Event]) -> list[Any]:
    """Render the status changes of the job with time and actor."""
    moves = [event for event in events if event.to_status is not None]
    rows = [styled("timeline", "bold")]
    for event in moves:
        elapsed = f"{(event.created_at - moves[0].created_at).total_seconds():8.2f} s  "
        by = actor_name(event.actor)
        rows.append(line(styled(elapsed, "dim"), f"{event.to_status:<20} ", styled(by, "dim")))
    return rows
