"""`draftsman demo`: one real job on a real repository, from the request to the branch."""

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
from draftsman.domain.ids import actor_name
from draftsman.errors import AnswerTimeout, DraftsmanError, UsageError
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.prompts import prompt
from draftsman_tui.common.output import CommandOutput, line, one_line, styled
from draftsman_tui.common.own_command import DRAFTSMAN_COMMAND

if TYPE_CHECKING:
    from draftsman.domain.event import Event
    from draftsman.domain.job import Job
    from draftsman.domain.people.actor import Actor
    from draftsman.domain.question import Question
    from draftsman.runtime import Runtime

ANSWER: Final = "safe fixes"
KILL_AT: Final = "job_started"
"""Of the run that has the answer and applies it: the middle of the work."""
HIDDEN: Final = frozenset({"job_claimed", "answer_received"})
TIMEOUT: Final = 120
"""Seconds without an event after which the demo says that something is wrong."""


class Demo:
    """One demonstration: a queue, a worker and a job of its own."""

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
        """Run the job to its end; return the number. `kill` kills its worker in the middle."""
        self._log = Path(tempfile.mkstemp(prefix="draftsman-demo-", suffix=".log")[1])
        submitting = asyncio.create_task(self._submit(repo))
        try:
            number = await asyncio.shield(submitting)
            async with self._working():
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

    def info(self, what: str, text: str, style: str = "", at: float | None = None) -> None:
        """Print one step with the seconds since the start; `at` is a Unix time, None is now."""
        if self._out.json:
            return
        seconds = f"{max(0.0, (at or time.time()) - self._began):6.1f} s  "
        self._out.print(line(styled(seconds, "dim"), styled(f"{what:<10}", style), text))

    async def _cancel(self, number: int) -> None:
        """End the job: no other worker serves the demo's queue."""
        await self._runtime.job_control.cancel(number, self._actor, "the demo ended", force=True)

    async def _submit(self, repo: Path) -> int:
        from draftsman.services.jobs.submissions import invocation

        asked = invocation(
            type="run_agent",
            agent="tidy",
            repo=str(repo),
            queue=self._queue,
            title=f"Tidy up {repo.name}",
            tags=("demo",),
        )
        made = await self._runtime.submissions.submit(asked, self._actor)
        self.info("request", f"tidy up {repo}", "bold")
        self.info("job", f"{made.name}, one row in PostgreSQL from now on, whatever dies", "bold")
        return made.number

    @asynccontextmanager
    async def _working(self) -> AsyncIterator[None]:
        await self._start_worker()
        try:
            yield
        finally:
            await self._stop_worker()

    async def _start_worker(self) -> None:
        from draftsman.shutdown import blocked

        config = ("--config", str(self._config)) if self._config else ()
        with self._log.open("ab") as log, blocked():
            self._worker = await asyncio.create_subprocess_exec(
                *(*DRAFTSMAN_COMMAND, *config),
                *("worker", "--queue", self._queue, "--slots", "1", "--parent", str(os.getpid())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.info("worker", f"pid {self._worker.pid} starts", "cyan")

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
        """Show the promise: nothing is lost, whatever dies."""
        assert self._worker is not None  # noqa: S101 - it runs: its event was just read
        self._worker.kill()
        await self._worker.wait()
        self.info("kill -9", f"worker {self._worker.pid} is dead, in the middle of the work", "red")
        await self._start_worker()

    async def _events(self, number: int) -> AsyncIterator[Event]:
        """Yield the job's events; raises DraftsmanError when the worker dies or nothing moves."""
        events = self._runtime.read_model.follow(number)
        while True:
            coming = asyncio.ensure_future(anext(events))
            for _ in range(TIMEOUT):
                await asyncio.wait({coming}, timeout=1)
                if coming.done():
                    break
                self._check_worker()
            else:
                coming.cancel()
                why = await self._runtime.read_model.why(number)
                raise DraftsmanError(
                    f"D-{number} makes no progress: {why.text}; the worker's log: {self._log}"
                )
            try:
                yield await coming
            except StopAsyncIteration:
                return

    def _check_worker(self) -> None:
        if self._worker is not None and self._worker.returncode is not None:
            said = self._log.read_text(encoding="utf-8", errors="replace").strip()
            last = said.rpartition("\n")[2] or f"exit code {self._worker.returncode}"
            raise DraftsmanError(f"the demo's worker ended: {last}; its log: {self._log}")

    async def _answer(self, number: int, answer: str | None) -> None:
        """Answer what is open; a person who names no choice is asked again."""
        for question in await self._runtime.questions.open(number):
            self._show_question(question)
            while not await self._tried(question, answer):
                pass

    async def _tried(self, question: Question, answer: str | None) -> bool:
        from draftsman.domain.answer import Response

        asked = answer is None and self._out.interactive
        text = _prompt(question) if asked else answer or ANSWER
        response = Response(source_event_id=f"demo:{question.name}:{text}", text=text)
        try:
            verdict = await self._runtime.questions.answer(
                question.job, question.ordinal, response, self._actor
            )
        except UsageError as error:
            if not asked:
                raise
            self.info("again", str(error), "red")
            return False
        self.info("answer", text if verdict.accepted else verdict.reason or "", "green")
        return True

    def _show_question(self, question: Question) -> None:
        if self._out.json:
            return
        self.info("question", f"{question.name}  {question.text}", "yellow")
        for place, choice in enumerate(question.choices, 1):
            about = f"  {choice['description']}" if choice.get("description") else ""
            label = styled(f"{place}  {choice['label']:<12}", "bold")
            self._out.print(line(f"{'':21}", label, about))

    def _show(self, event: Event) -> None:
        if self._out.json:
            self._out.item(event)
        elif event.kind not in HIDDEN:
            self.info(*_told(event), event.created_at.timestamp())


def _prompt(question: Question) -> str:
    try:
        return prompt("Your answer, by number or name", default="1")
    except click.Abort:
        click.echo(err=True)
        raise AnswerTimeout(
            f"nobody answered {question.name}; the demo's job is canceled with it"
        ) from None


def _found(payload: dict[str, Any]) -> str:
    mark = "passes" if payload.get("passed") else "fails"
    return f"{payload['name']} {mark}: {payload.get('summary', '')}"


def _confined(applied: dict[str, Any]) -> str:
    network = "network open" if applied.get("network") else "no network"
    weaker = "; weaker than bwrap: see draftsman doctor"
    told = weaker if applied.get("mode") == "landlock" else ""
    return f"{applied.get('mode')}, {network}{told}"


TOLD: Final[dict[str, tuple[str, str, Callable[[dict[str, Any]], str]]]] = {
    "job_created": ("queued", "cyan", lambda _: "until a worker takes it"),
    "job_started": ("run", "cyan", lambda _: "starts, in a clone of its own"),
    "repo_resolved": ("clone", "cyan", lambda found: f"at {found['base_sha'][:12]}"),
    "sandbox_applied": ("sandbox", "cyan", _confined),
    "agent.validation_ran": ("validate", "cyan", _found),
    "agent.command_executed": (
        "fix",
        "cyan",
        lambda ran: f"{ran['name']}: {ran.get('summary', '')}",
    ),
    "needs_input": ("parked", "yellow", lambda _: "the run waits for a person, holding no slot"),
    "job_resumed": ("resumed", "green", lambda end: f"by {', '.join(end.get('by', ()))}"),
    "job_handed_back": ("rescued", "green", lambda _: "it goes on from its checkpoint"),
    "branch_published": ("branch", "green", lambda at: f"{at['branch']} at {at['commit'][:12]}"),
    "job_completed": ("completed", "bold green", lambda _: ""),
}
"""Events as steps of the demo: a word, its style, and the text made of the payload."""


def _told(event: Event) -> tuple[str, str, str]:
    if event.kind in TOLD:
        word, style, text = TOLD[event.kind]
        return word, text(event.payload), style
    about = event.payload.get("error") or event.payload.get("reason") or ""
    return event.kind.removeprefix("job_")[:10], one_line(str(about)), "red"


@command(
    "demo",
    examples=(
        "draftsman demo                            on a small sample repository",
        "draftsman demo --repo . --kill            on yours, a worker killed in the middle",
        "draftsman demo --answer 'all fixes' | cat",
    ),
    long_running=True,
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    help="Your own repository: its .git gets nothing but the branch. Unset: a small sample.",
)
@click.option("--answer", help=f"The answer to the question; piped, {ANSWER!r} is given.")
@click.option("--kill", is_flag=True, help="Kill the worker with SIGKILL in the middle.")
async def demo(app: App, repo: Path | None, answer: str | None, kill: bool) -> None:
    """Run one real job on a real repository, with no credentials.

    It exits 0 only if the job completed.
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
    """Run the job and print what it left; return its last status."""
    out = app.out
    async with app.runtime() as runtime, _repository(repo) as place:
        show = Demo(runtime, out, await runtime.actor(), app.config)
        health, _ = await runtime.read_model.health()
        where = "embedded, its data kept" if runtime.embedded else "the configured server"
        show.info("database", f"PostgreSQL {health.version.split()[0]}, {where}", "cyan")
        number = await show.run(place, answer, kill=kill)
        job = await runtime.read_model.job(number)
        if app.json:
            out.item(job)
        else:
            out.print(*_summary(job), *_timeline(await runtime.read_model.job_events(number)))
            out.print(*_next_steps(job, place))
    return job.status


@asynccontextmanager
async def _repository(repo: Path | None) -> AsyncIterator[Path]:
    """Give the repository to work on; a sample of ours is kept, unless the demo is interrupted."""
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
    place = repo.expanduser().resolve()
    if not place.is_dir():
        raise UsageError(f"{repo} is not a folder; give --repo the path of a git repository")
    yield place


def _summary(job: Job) -> list[Any]:
    result = job.result or {}
    lines: list[Any] = ["", styled(f"{job.name} is {job.status}", "bold")]
    if job.last_error and job.status != "completed":
        lines.append(styled(job.last_error, "red"))
    if result.get("summary"):
        lines.append(str(result["summary"]))
    return [*lines, ""]


def _next_steps(job: Job, place: Path) -> list[str]:
    branch = (job.result or {}).get("branch")
    lines = ["", "See for yourself:"]
    if branch:
        lines.append(f"  git -C {place} log --stat -1 {branch}")
    # `make demo` calls it by its path; what is printed is to be copied
    called = sys.argv[0] if sys.argv[0].endswith("/draftsman") else "draftsman"
    command = "draftsman" if shutil.which("draftsman") else called
    return [*lines, *(f"  {command} {verb} {job.name}" for verb in ("show", "diff"))]


def _timeline(trail: Sequence[Event]) -> list[Any]:
    """Return the statuses that the job passed, each with its time and who moved it."""
    moves = [event for event in trail if event.to_status is not None]
    rows = [styled("timeline", "bold")]
    for event in moves:
        at = f"{(event.created_at - moves[0].created_at).total_seconds():8.2f} s  "
        by = actor_name(event.actor)
        rows.append(line(styled(at, "dim"), f"{event.to_status:<20} ", styled(by, "dim")))
    return rows
