"""The `demo` command: a job on a real repository, from the request to the branch."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from draftsman import __version__
from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.deliveries.question_text import visible_context
from draftsman.errors import AnswerTimeout, DraftsmanError, SchemaOutdated, UsageError
from draftsman.ids import actor_name, job_name
from draftsman.processes.shutdown import shutdown_signals
from draftsman_tui.cli.app import App, command
from draftsman_tui.cli.demo.agent import (
    REQUEST,
    demo_agent,
    find_agent,
    own_configuration,
    unusable_database,
)
from draftsman_tui.cli.demo.steps import Steps
from draftsman_tui.cli.prompts import prompt
from draftsman_tui.common.sections import reader_at
from draftsman_tui.terminal.extras import LOCAL_CHATS, of_channel, require
from draftsman_tui.terminal.output import CommandOutput, line, styled
from draftsman_tui.terminal.own_command import DRAFTSMAN_COMMAND, start_process, stop_process

if TYPE_CHECKING:
    from draftsman.events.event import Event
    from draftsman.jobs.job import Job
    from draftsman.people.actor import Actor
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime


def summary(job: Job) -> list[Any]:
    """Return the lines of the job's result."""
    result = job.result or {}
    lines: list[Any] = ["", styled(f"{job.name} is {job.status}", "bold")]
    if job.last_error and job.status != "completed":
        lines.append(styled(job.last_error, "red"))
    if result.get("summary"):
        lines.append(str(result["summary"]))
    return [*lines, ""]


def next_steps(job: Job, repo: Path, config: Path | None = None) -> list[str]:
    """Return the commands that show more of the job."""
    branch = (job.result or {}).get("branch")
    lines = ["", "Next steps:"]
    if branch:
        lines.append(f"  git -C {repo} log --stat -1 {branch}")
    # `make demo` calls draftsman by its path, and the printed commands must work when copied
    program = sys.argv[0] if sys.argv[0].endswith("/draftsman") else "draftsman"
    command = "draftsman" if shutil.which("draftsman") else program
    if config is not None:
        command += f" --config {shlex.quote(str(config))}"
    verbs = ("show", "diff") if branch else ("show",)
    return [*lines, *(f"  {command} {verb} {job.name}" for verb in verbs)]


def timeline(events: Sequence[Event]) -> list[Any]:
    """Render the status changes of the job with time and actor."""
    moves = [event for event in events if event.to_status is not None]
    rows = [styled("timeline", "bold")]
    for event in moves:
        elapsed = f"{(event.created_at - moves[0].created_at).total_seconds():8.2f} s  "
        by = actor_name(event.actor)
        rows.append(line(styled(elapsed, "dim"), f"{event.to_status:<20} ", styled(by, "dim")))
    return rows


TIDY: Final = "tidy"
ANSWER: Final = "safe fixes"
ALLOW: Final = "allow once"
KILL_AT: Final = "job_started"
"""Event kind at which --kill kills the worker: the start of the run that applies the answer."""
TIMEOUT: Final = 120
"""Maximum number of seconds without an event."""


class Demo:
    """A demo with its own queue, worker and job."""

    def __init__(
        self,
        runtime: Runtime,
        out: CommandOutput,
        actor: Actor,
        config: Path | None,
        agent: str,
        env: Mapping[str, str],
    ) -> None:
        self._runtime = runtime
        self._out = out
        self._actor = actor
        self._config = config
        self._agent = agent
        self._env = env
        self._queue = f"demo-{os.getpid()}"
        self.steps = Steps(out)
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
                    self.steps.show(event, reader_at(policy=self._runtime.policy))
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

    async def _cancel(self, number: int) -> None:
        """Cancel the job, since no other worker serves the demo's queue."""
        reason = "the demo ended"
        await self._runtime.job_control.cancel(number, self._actor, reason, force=True)

    async def _submit(self, repo: Path) -> int:
        from draftsman.jobs.requests.service.submissions import invocation

        title = f"Tidy up {repo.name}" if self._agent == TIDY else REQUEST
        request = invocation(
            type="run_agent",
            agent=self._agent,
            repo=str(repo),
            queue=self._queue,
            title=title,
            tags=("demo",),
        )
        job = await self._runtime.submissions.submit(request, self._actor)
        self.steps.info("request", f"{title} ({repo})", "bold")
        self.steps.info("job", f"{job.name}, stored in PostgreSQL", "bold")
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
                (*DRAFTSMAN_COMMAND, *config, "worker", *options), output=log, env=self._env
            )
        self.steps.info("worker", f"started, pid {self._worker.pid}", "cyan")

    async def _stop_worker(self) -> None:
        if self._worker is not None:
            await stop_process(self._worker)

    async def _kill(self) -> None:
        """Kill the worker and start another, to show that no work is lost."""
        assert self._worker is not None  # noqa: S101 - it runs: its event was just read
        self._worker.kill()
        await self._worker.wait()
        await self._replace_worker()

    async def _replace_worker(self) -> None:
        assert self._worker is not None  # noqa: S101 - it was killed
        self.steps.info("kill -9", f"worker {self._worker.pid} killed during the run", "red")
        await self._start_worker()

    async def _events(self, number: int) -> AsyncIterator[Event]:
        """Yield events of the job; raises DraftsmanError if its worker exits or nothing happens.

        A worker that was killed is replaced.
        """
        events = self._runtime.read_model.follow(number)
        while True:
            next_event = asyncio.ensure_future(anext(events))
            for _ in range(TIMEOUT):
                await asyncio.wait({next_event}, timeout=1)
                if next_event.done():
                    break
                await self._check_worker()
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

    async def _check_worker(self) -> None:
        if self._worker is None or self._worker.returncode is None:
            return
        if self._worker.returncode == -signal.SIGKILL:
            await self._replace_worker()
        else:
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
        from draftsman.questions.response import Response

        prompted = answer is None and self._out.interactive
        text = _prompt(question) if prompted else answer or self._default_answer
        response = Response(source_event_id=f"demo:{question.name}:{text}", text=text)
        try:
            verdict = await self._runtime.questions.answer(
                question.job, question.ordinal, response, self._actor
            )
        except UsageError as error:
            if not prompted:
                raise
            self.steps.info("invalid", str(error), "red")
            return False
        answered = verdict.answer_text or text
        self.steps.info("answer", answered if verdict.accepted else verdict.reason or "", "green")
        return True

    @property
    def _default_answer(self) -> str:
        return ANSWER if self._agent == TIDY else ALLOW

    def _show_question(self, question: Question) -> None:
        from draftsman.jobs.details.sections.questions import choice_lines
        from draftsman_tui.common.sections import indented

        if self._out.json:
            return
        first, *others = [text for text in question.text.splitlines() if text]
        self.steps.info("question", f"{question.name}  {first}", "yellow")
        for text in others:
            self._out.print(f"{'':21}{text}")
        for text in visible_context(question).splitlines():
            self._out.print(line(f"{'':21}", styled(text, "dim")))
        for choice in indented(choice_lines(question)):
            self._out.print(line(f"{'':17}", choice))


def _prompt(question: Question) -> str:
    try:
        return prompt("Your answer (number or name)", default="1")
    except click.Abort:
        click.echo(err=True)
        raise AnswerTimeout(
            f"{question.name} was not answered; the demo's job was canceled"
        ) from None


@command(
    "demo",
    section="Processes",
    examples=(
        "draftsman demo                            on a small sample repository",
        "draftsman demo --repo . --kill            on your repository, killing a worker",
        "draftsman demo --answer 'all fixes' | cat",
        "draftsman demo --agent codex              with a coding agent; auto: an installed one",
        "draftsman demo --slack                    you ask, answer and approve in a local Slack",
    ),
    long_running=True,
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    help="Path of a repository, which only gets a new branch; default: a small sample.",
)
@click.option(
    "--answer",
    help=f"Answer to the question; without a terminal: {ANSWER!r}, for a coding agent {ALLOW!r}.",
)
@click.option(
    "--agent",
    default=TIDY,
    show_default=True,
    metavar="NAME",
    help="A coding agent, or auto. Without a configured gateway, a scripted model answers.",
)
@click.option("--kill", is_flag=True, help="Kill the worker with SIGKILL during the run.")
@click.option("--slack", "chat", flag_value="slack", help="A page of a local Slack, to try it.")
@click.option("--trello", "chat", flag_value="trello", help="A page of a local Trello, to try it.")
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
async def demo(
    app: App,
    repo: Path | None,
    answer: str | None,
    agent: str,
    kill: bool,
    chat: str | None,
    no_browser: bool,
) -> None:
    """Run an example job on a sample repository, no credentials needed.

    A coding agent is the real program: its permission requests are questions, and it reaches its
    model by the gateway alone.

    It has its own data and configuration: yours are neither read nor changed, unless --config names
    a file.

    With --slack or --trello you ask, answer and approve yourself, on a page in the browser that
    stands for the service: no account, and nothing leaves this machine. Ctrl-C ends it.

    Exits with 0 only if the job completed, or after Ctrl-C on a page.
    """
    _check_options(chat, no_browser, {"--answer": answer, "--kill": kill, "--json": app.json})
    is_isolated = app.config is None
    if app.config is None:
        app.config = own_configuration(chat)
    if not app.json:
        own = f"  its own data: {app.config.parent}" if is_isolated else ""
        app.out.print(line(styled(f"draftsman {__version__} demo", "bold"), styled(own, "dim")))
    async with shutdown_signals():
        try:
            with _agent_environment(app, agent, repo) as (name, env):
                if chat is not None:
                    await _demonstrate_in_chat(app, repo, name, env, chat, browser=not no_browser)
                    return
                status = await _demonstrate(app, repo, answer, name, env, kill=kill)
        except SchemaOutdated as error:
            if not is_isolated:
                raise
            raise unusable_database(app.config, error) from None
        if status != "completed":
            raise click.exceptions.Exit(1)
        return
    if chat is None:
        raise click.Abort


def _check_options(chat: str | None, no_browser: bool, others: Mapping[str, object]) -> None:
    """Raise UsageError for options that do not fit together."""
    if chat is None and no_browser:
        raise UsageError("--no-browser applies to a page; add --slack or --trello")
    for name, value in others.items():
        if chat is not None and value:
            raise UsageError(f"{name} does not apply to --{chat}, whose story is on a page")


async def _demonstrate_in_chat(
    app: App,
    repo: Path | None,
    agent: str,
    env: Mapping[str, str],
    chat: str,
    *,
    browser: bool,
) -> None:
    """Run the demo on the page of a chat until a shutdown signal."""
    from draftsman_tui.cli.demo import chat as chats
    from draftsman_tui.cli.demo.unfinished import alone

    require(of_channel(chat))
    require(LOCAL_CHATS)
    request = "Tidy up" if agent == TIDY else REQUEST
    open_chat = partial(chats.CHATS[chat], agent, request)
    story = f"{chat} {agent}"
    with alone(app.settings.data_dir):
        await chats.demonstrate_chat(app, open_chat, repo, env, story, browser=browser)


@contextmanager
def _agent_environment(
    app: App, agent: str, repo: Path | None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the agent and the environment of its worker."""
    if agent == TIDY:
        yield agent, {}
        return
    name = find_agent(app.settings) if agent == "auto" else agent
    with demo_agent(app.settings, name) as env:
        if env and repo is not None:
            raise UsageError(
                f"the scripted model knows only the sample; set [agents.{name}] gateway for --repo"
            )
        yield name, env


async def _demonstrate(
    app: App,
    repo: Path | None,
    answer: str | None,
    agent: str,
    env: Mapping[str, str],
    *,
    kill: bool,
) -> str:
    """Run the job and print its result; return its final status."""
    out = app.out
    async with app.runtime() as runtime, _repository(repo) as folder:
        demonstration = Demo(runtime, out, await runtime.actor(), app.config, agent, env)
        health, _ = await runtime.read_model.health()
        server = "embedded, data is kept" if runtime.embedded else "the configured server"
        version = health.version.split()[0]
        demonstration.steps.info("database", f"PostgreSQL {version}, {server}", "cyan")
        number = await demonstration.run(folder, answer, kill=kill)
        job = await runtime.read_model.job(number)
        if app.json:
            out.item(job)
        else:
            out.print(
                *summary(job),
                *timeline(await runtime.read_model.job_events(number)),
            )
            out.print(*next_steps(job, folder, app.config))
    return job.status


@asynccontextmanager
async def _repository(repo: Path | None) -> AsyncIterator[Path]:
    """Yield the repository; the sample is deleted only if the demo is interrupted."""
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
