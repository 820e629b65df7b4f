"""`run_agent`: run of an agent in a clone of the job's repository.

    repository -> mirror -> clone -> agent (JSON lines) -> snapshot -> validators, limits
                              ^                                            |
                              +------ required validators failed ----------+-> branch, patch, result

All state is in PostgreSQL, so that any host can resume the job: each checkpoint of the agent is
stored with a bundle of the work in progress.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from draftsman.domain.budgets import own_budget
from draftsman.domain.job import Mode
from draftsman.domain.messages.plain_text import pr_url
from draftsman.domain.outcome import Done, Outcome, Parked
from draftsman.domain.question_spec import QuestionSpec
from draftsman.domain.read_models import SavedProfile
from draftsman.domain.repos.repo_profile import RepoProfile
from draftsman.domain.reserved_names import Owner
from draftsman.errors import Failure, UsageError
from draftsman.handlers.clone.clone_cleanup import clone_tag
from draftsman.handlers.clone.workspace import Snapshot, Workspace
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.network_proxy.access import open_network_proxy
from draftsman.handlers.run_agent.agent_choice import AGENT_SETTING, DEFAULT_AGENT, choose_agent
from draftsman.handlers.run_agent.agent_messages import ResultMessage
from draftsman.handlers.run_agent.iteration import Iteration
from draftsman.handlers.run_agent.job_budget import apply_answer
from draftsman.handlers.run_agent.profile_limits import approval_of, check_paths, unapprovable
from draftsman.handlers.run_agent.protocol import StartMessage
from draftsman.handlers.run_agent.protocol_codec import encode
from draftsman.handlers.run_agent.repository import JobRepository, resolve_repository
from draftsman.handlers.run_agent.session.agent_gateway import open_gateway
from draftsman.handlers.run_agent.session.agent_session import AgentSession
from draftsman.handlers.run_agent.session.run_socket import serve_run_socket, socket_folder
from draftsman.handlers.run_agent.session.saved_work import SavedWork
from draftsman.handlers.run_agent.session.usage_meter import UsageMeter
from draftsman.handlers.run_agent.start_message import build_start_message, run_parameters
from draftsman.handlers.run_agent.validation import (
    add_validation,
    blocking_failures,
    run_setup,
    validate,
)
from draftsman.handlers.subprocesses.process import AgentProcess
from draftsman.handlers.worker_run import WorkerRun
from draftsman.settings import AgentSettings
from draftsman.version import installed

BASE: Final = "agent:base"
"""Step that pins the base commit."""
PUBLISH: Final = "agent:publish"
PUSH: Final = "agent:push:"
"""Prefix of steps of runs that pushed, whose invocation ids are the commits."""
COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


async def run_agent(ctx: RunContext) -> Outcome:
    """Run the job's agent; park for its questions, resume from its latest checkpoint."""
    run, usage = worker_run(ctx), dict[str, Any]()
    await apply_answer(run)
    deadline = datetime.now(UTC) + timedelta(seconds=run.deadline)
    while (outcome := await _run_iteration(run, usage, deadline)) is None:
        pass
    return outcome


async def _run_iteration(
    run: WorkerRun, usage: dict[str, Any], deadline: datetime
) -> Outcome | None:
    """Run the agent once; None if its work has to be improved.

    `usage` is that of the run so far.
    """
    checkpoint, bundle = await run.saved_work()
    repository = await resolve_repository(run, (checkpoint or {}).get("repo"))
    agent_name, agent = choose_agent(run, repository)
    if run.job.agent is None:
        await run.assign_agent(agent_name)
    steps = await run.steps(Owner.WORKER)
    pinned = steps[BASE].result if BASE in steps else None
    iteration = Iteration.latest(steps)
    workspace = await Workspace.prepare(
        run.settings.data_dir,
        repository.source,
        job=run.job.number,
        run=run.job.run,
        tag=clone_tag(run.job.id),
        base=pinned or (checkpoint or {}).get("base_sha") or repository.ref,
        bundle=bundle,
        created_at=run.job.created_at,
        http=run.settings.http,
    )
    try:
        workspace = await workspace.with_sandbox(run.settings.sandbox)
        if pinned is None:
            await run.step(BASE, lambda _: workspace.base_sha, owner=Owner.WORKER)
            await run.event("repo_resolved", repository.as_event(workspace.base_sha), Owner.WORKER)
        assert workspace.sandbox is not None  # noqa: S101 - see above
        await run.event("sandbox_applied", workspace.sandbox.as_event(agent.network), Owner.WORKER)
        await run_setup(run, workspace, repository.saved)
        checkpoint_commit = await workspace.bundle_commit() if bundle else None
        work = SavedWork(
            run,
            workspace,
            repository.pinned,
            checkpoint_commit,
            (checkpoint or {}).get("agent"),
        )
        metered = agent.gateway is not None
        meter = UsageMeter(run, usage, _own_budget(repository), metered=metered)
        session = AgentSession(run, workspace, work, meter)
        if iteration.result is not None:
            session.result = ResultMessage.model_validate(iteration.result)
        elif not await session.is_budget_used():
            start = await build_start_message(
                *(run, workspace, repository, checkpoint, iteration, deadline),
                messages=await session.messages.for_start(),
                network=agent.network,
            )
            params = run_parameters(agent_name, agent, workspace, repository, start)
            await run.describe(params)
            session.grace.on_continue = partial(run.describe, params)
            begun = {"iteration": iteration.number, "runner": f"draftsman {installed()}"}
            begun |= {name: params[name] for name in ("agent", "version") if name in params}
            await run.event("iteration_started", begun, Owner.WORKER)
            await _run_session(run, agent, workspace, session, start)
            if run.parked:  # its question was asked while it was running
                raise Parked
            await session.store_progress()
            await run.exited(session.exit_code)
        run.ending = False
        if session.question is not None:
            await _park(run, session, session.question)
        return await _finish_job(run, workspace, session, repository.saved, iteration)
    finally:
        with contextlib.suppress(Failure, OSError):
            await workspace.remove()


async def _run_session(
    run: WorkerRun,
    agent: AgentSettings,
    workspace: Workspace,
    session: AgentSession,
    start: StartMessage,
) -> None:
    """Start the agent and handle its messages until it exits; park it on shutdown or pause."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def on_stderr(chunk: bytes) -> None:
        if await session.grace.may_write():
            await run.log_stream(decoder.decode(chunk))

    async def respond(line: bytes) -> bytes:
        return await session.answer_program(await started, line)

    assert workspace.sandbox is not None  # noqa: S101 - a run has its sandbox
    started = asyncio.get_running_loop().create_future()
    folder = socket_folder(workspace.folder)
    sandbox = replace(workspace.sandbox, socket=folder)
    async with (
        serve_run_socket(folder, sandbox.uid, respond),
        open_gateway(run, agent, sandbox, session) as gateway,
        open_network_proxy(
            *(run.settings.http, agent.network, sandbox, run.limits),
            setting=AGENT_SETTING,
            log=run.log_line,
        ) as proxy,
        await AgentProcess.start(
            agent,
            cwd=workspace.path,
            home=workspace.home,
            lease=run.settings.worker.lease,
            on_stderr=on_stderr,
            sandbox=sandbox,
            gateway=gateway,
            proxy=proxy,
        ) as process,
    ):
        started.set_result(process)
        run.on_heartbeat(process.heartbeat)
        run.on_heartbeat(session.messages.wake)
        await process.send(encode(start))
        listener = asyncio.create_task(session.listen(process))
        watchers = (
            asyncio.create_task(session.watch_disk(process)),
            asyncio.create_task(session.relay_messages(process)),
        )
        try:
            await asyncio.shield(listener)
        except asyncio.CancelledError:
            if run.stopping in ("shutdown", "paused"):
                await session.park(process, None)
                await asyncio.wait([listener], timeout=run.settings.worker.abort)
            raise
        finally:
            run.ending = True
            process.kill()  # its exit ends the listener even if a cancellation is lost
            listener.cancel()
            for watcher in watchers:
                watcher.cancel()
            await asyncio.gather(listener, *watchers, return_exceptions=True)


async def _park(run: WorkerRun, session: AgentSession, question: QuestionSpec) -> None:
    """Ask people, and show the patch of the latest checkpoint, from which the next run starts.

    Work after that checkpoint is lost, so the patch does not have it.
    """
    if (patch := await session.work.patch()) is not None:
        await run.patch(patch)
    await run.ask_or_park(question, session.work.patch_sha256)


async def _finish_job(
    run: WorkerRun,
    workspace: Workspace,
    session: AgentSession,
    saved: SavedProfile | None,
    iteration: Iteration,
) -> Done | None:
    """Store the patch, publish the branch and return the job's result.

    None if the agent has to improve the work: required validators failed, or a person has sent a
    message.
    """
    if session.error is not None:
        session.error.program_exit = session.exit_code
        raise session.error
    if session.result is None:
        raise Failure(
            f"the agent exited with code {session.exit_code} without a result",
            origin="agent",
            code="protocol" if session.exit_code == 0 else "exit",
            program_exit=session.exit_code,
        )
    result: dict[str, Any] = {"summary": session.result.summary, "data": session.result.data}
    snapshot = await workspace.snapshot(_commit_message(run, session.result.summary))
    if await _begin_for_messages(run, session, snapshot, iteration):
        return None
    result["files_changed"] = snapshot.files_changed
    if snapshot.files_changed == 0:
        if await run.has_patch():  # of an earlier run that asked a question
            await run.patch(b"")
        return await _to_done(run, workspace, session, result)
    result |= {"insertions": snapshot.insertions, "deletions": snapshot.deletions}
    await run.patch(await workspace.diff(snapshot))
    if run.job.mode is Mode.FIX:
        if saved is not None:
            check_paths(saved.profile, await workspace.changed_paths(snapshot))
        commands = await validate(run, workspace, saved)
        if saved is not None and (failed := blocking_failures(commands)):
            iteration.check_next(snapshot.tree, failed, saved.profile.max_iterations)
            await session.save_result(snapshot)
            await iteration.begin_next(run, snapshot.tree, failed)
            return None
        if saved is not None:
            await _require_approval(run, workspace, session, saved.profile, snapshot, iteration)
        if await _begin_for_messages(run, session, snapshot, iteration):
            return None
        result = add_validation(result, commands)
        result["commit"] = await run.step(
            PUBLISH, lambda _: _publish(run, workspace, snapshot), owner=Owner.WORKER
        )
        result["branch"] = workspace.branch
        published = {"branch": workspace.branch, "commit": snapshot.commit}
        await run.event("branch_published", published, Owner.WORKER)
    return await _to_done(run, workspace, session, result)


async def _require_approval(
    run: WorkerRun,
    workspace: Workspace,
    session: AgentSession,
    profile: RepoProfile,
    snapshot: Snapshot,
    iteration: Iteration,
) -> None:
    """Park for an approval of work that exceeds a limit of the profile, unless it is approved.

    The next run continues here, without the agent.
    """
    paths = await workspace.changed_paths(snapshot)
    approval = approval_of(profile, snapshot, paths, workspace.branch)
    if approval is None:
        return
    patch = hashlib.sha256(await workspace.diff(snapshot)).hexdigest()

    async def shown() -> str:
        return patch

    if await run.find_answer(approval, shown) is not None:  # a denial ends the job
        return
    try:
        run.check_question(approval)
    except UsageError as error:
        raise unapprovable(approval, error) from None
    if iteration.result is None and session.result is not None:
        await session.save_result(snapshot)
        fields = {"summary": session.result.summary, "data": session.result.data}
        await iteration.save_result(run, fields)
    await run.ask_or_park(approval, shown)


def _own_budget(repository: JobRepository) -> dict[str, float] | None:
    """Return the budget of the job by the profile of its repository."""
    return own_budget(repository.saved.profile.budget if repository.saved else None)


async def _begin_for_messages(
    run: WorkerRun, session: AgentSession, snapshot: Snapshot, iteration: Iteration
) -> bool:
    """Begin another iteration if a person has sent a message that the work does not have."""
    if not await session.misses_messages():
        return False
    await session.save_result(snapshot)
    await iteration.begin_next(run)
    return True


async def _to_done(
    run: WorkerRun, workspace: Workspace, session: AgentSession, result: dict[str, Any]
) -> Done:
    """Return the outcome with the agent's pull request and without paths of the worker."""
    if (url := pr_url(result)) is not None:
        result["pr_url"] = url
        await run.pull_request(url)
        line_delta = result.get("insertions", 0) - result.get("deletions", 0)
        payload = {"pr_url": url, "files_changed": result["files_changed"], "loc_delta": line_delta}
        await run.event("pr_created", payload, Owner.WORKER)
    await session.deliver_messages()
    return Done(workspace.relative(result))


async def _publish(run: WorkerRun, workspace: Workspace, snapshot: Snapshot) -> str:
    """Push the branch, over commits of earlier runs of this job only.

    Such a run died before it could record the push, and an agent that runs again makes another
    commit. Raises Failure `branch_moved`, …
    """
    steps = await run.steps(Owner.WORKER)
    pushed = [step.invocation_id for key, step in steps.items() if key.startswith(PUSH)]
    key = f"{PUSH}{run.job.run}"
    await run.note_step(key, snapshot.commit, Owner.WORKER)
    await _push(workspace, snapshot, [commit for commit in pushed if COMMIT.fullmatch(commit)])
    await run.finish_step(key, snapshot.commit, Owner.WORKER)
    return snapshot.commit


async def _push(workspace: Workspace, snapshot: Snapshot, own_commits: list[str]) -> None:
    for expected in (None, *own_commits):
        try:
            await workspace.publish(snapshot, expected)
        except Failure as error:
            if error.code != "branch_moved":
                raise
            branch_moved = error
        else:
            return
    raise branch_moved


def _repo_name(run: WorkerRun) -> str:
    name = run.job.repo_name or ""
    return f"{run.job.repo_owner}/{name}" if run.job.repo_owner else name


def _commit_message(run: WorkerRun, summary: str) -> str:
    title = run.job.ticket_title or f"{run.job.agent or DEFAULT_AGENT} on {Path(_repo_name(run))}"
    return f"{title}\n\n{summary}\n\nMade by draftsman, {run.job.name}."
