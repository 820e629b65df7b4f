"""`run_agent`: run of an agent in a clone of the job's repository.

    repository -> mirror -> clone -> agent (JSON lines) -> snapshot -> validation in a fresh clone
                              ^                                            |
                              +------ required validators failed ----------+-> branch, patch, result

All state is in PostgreSQL, so that any host can resume the job: each checkpoint of the agent is
stored with a bundle of the work in progress.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from draftsman.agent_runs.agent_choice import AGENT_SETTING
from draftsman.agent_runs.changes.patch_files import patch_files
from draftsman.agent_runs.clones.commits import CommitIdentity, JobBranches
from draftsman.agent_runs.clones.tree_removal import clone_tag
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.completion import WorkCompletion
from draftsman.agent_runs.follow_ups import continued_branch, left_to_people
from draftsman.agent_runs.iteration_plan import BASE, BRANCH, IterationPlan, plan_iteration
from draftsman.agent_runs.policies.file_classes import classes_of
from draftsman.agent_runs.policies.repo_policy import names
from draftsman.agent_runs.policy_check import owners_of_changes
from draftsman.agent_runs.protocol.agent_messages import ResultMessage
from draftsman.agent_runs.protocol.codec import encode
from draftsman.agent_runs.protocol.protocol import StartMessage
from draftsman.agent_runs.protocol.start_message import build_start_message, run_parameters
from draftsman.agent_runs.session.agent_gateway import open_gateway
from draftsman.agent_runs.session.agent_session import AgentSession
from draftsman.agent_runs.session.run_socket import serve_run_socket, socket_folder
from draftsman.agent_runs.session.saved_work import SavedWork
from draftsman.agent_runs.session.usage_meter import UsageMeter
from draftsman.agent_runs.uncommitted_base import commit_changes
from draftsman.agent_runs.validation.fresh_clone import run_setup
from draftsman.agent_runs.written_attachments import write_attachments
from draftsman.costs import budgets
from draftsman.errors import Failure
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.worker_run import WorkerRun, to_answer
from draftsman.jobs.details.job_details import INCOMPLETE
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.outcome import Outcome, Parked
from draftsman.questions.answer import parse_amount
from draftsman.questions.question import BUDGET_KEY, Answered
from draftsman.sandbox.network_proxy.access import open_network_proxy
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.settings.agents import AgentSettings
from draftsman.version import installed


async def run_agent(ctx: RunContext) -> Outcome:
    """Run the job's agent; park for its questions, resume from its latest checkpoint."""
    run = worker_run(ctx)
    usage = dict[str, Any]()
    await _apply_budget_answer(run)
    deadline = datetime.now(UTC) + timedelta(seconds=run.deadline)
    while (outcome := await _run_iteration(run, usage, deadline)) is None:
        pass
    return outcome


async def _apply_budget_answer(run: WorkerRun) -> None:
    """Raise a budget that was used up by the amount that a person answered, once.

    Raises Failure `limit:budget` if the answer is to stop.
    """
    question = await run.wait(run.services.questions.of_key, run.job.number, BUDGET_KEY)
    answer = None if question is None else to_answer(question)
    if question is None or not isinstance(answer, Answered):
        return
    if answer.value == budgets.STOP:
        state = budgets.state_of(question.action or {})
        use = budgets.use_text(state, run.job.name)
        by = ", ".join(answer.by)
        raise budgets.budget_failure(f"{use}; stopped by {by}")
    amount = parse_amount(answer.value or answer.text or "")
    await run.wait(run.services.model_calls.raise_budget, run.job.lease, question.ordinal, amount)


async def _run_iteration(
    run: WorkerRun, usage: dict[str, Any], deadline: datetime
) -> Outcome | None:
    """Run the agent once; None if its work has to be improved.

    `usage` is that of the run so far.
    """
    plan = await plan_iteration(run)
    if (done := await left_to_people(plan)) is not None:
        return done
    workspace = await _prepare_workspace(plan)
    try:
        plan = replace(plan, agent=await _with_repo_config(plan, workspace))
        workspace = await workspace.with_sandbox(run.settings.sandbox)
        run.remove_paths = workspace.path_remover()
        sandbox = await _record_workspace(plan, workspace)
        session = await _open_session(plan, workspace, usage)
        if plan.iteration.result is not None:
            session.result = ResultMessage.model_validate(plan.iteration.result)
        elif not await session.is_budget_used():
            start = await _set_up(plan, workspace, session, deadline)
            await _run_program(plan, workspace, sandbox, session, start)
        run.ending = False
        if session.questions:
            await _park(run, session)
        return await WorkCompletion(plan=plan, workspace=workspace, session=session).finish()
    finally:
        with contextlib.suppress(Failure, OSError):
            await workspace.remove()


async def _prepare_workspace(plan: IterationPlan) -> Workspace:
    """Clone the repository at the commit from which the iteration goes on."""
    run = plan.run
    branch = await continued_branch(plan)
    changes = await commit_changes(plan)
    base = plan.checkpoint.get("base_sha") or plan.pinned_base or plan.repository.ref
    return await Workspace.prepare(
        run.settings.data_dir,
        plan.source,
        job=run.job.number,
        run=run.job.run,
        tag=clone_tag(run.job.id),
        base=base if changes is None else changes.id,
        bundle=plan.bundle,
        restored=not plan.sets_up_on_base,
        created_at=run.job.created_at,
        branch=branch,
        quotas=run.settings.quotas,
        parts=plan.parts,
        includes_all=plan.left_out != "leave",
        included=None if branch.work else plan.checkpoint.get("included"),
        identity=CommitIdentity.of(plan.git, run.job.invoker_id),
        branches=JobBranches(plan.git.branch),
        changes=changes,
    )


async def _with_repo_config(plan: IterationPlan, workspace: Workspace) -> AgentSettings:
    """Return the agent, with its own configuration of the repository if the profile allows it.

    It is that of the base commit: if the earlier work or uncommitted changes of the requester have
    configuration of agents, none is loaded, since nobody has approved what it permits.
    """
    agent = plan.agent
    if plan.saved is None or agent.repo_config_name not in plan.saved.profile.agent_config:
        return agent
    work = await workspace.bundle_commit()
    changes = [] if work is None else await workspace.changed_files(work)
    requested = patch_files(os.fsdecode(await workspace.patch_of_changes()))
    paths = [*(file.path for file in changes), *(file.path for file in requested)]
    if changed := [path for path in paths if "agent_config" in classes_of(path)]:
        plan.run.log_line(f"[configuration of agents not loaded] the work changes {names(changed)}")
        return agent
    return agent.with_repo_config()


async def _record_workspace(plan: IterationPlan, workspace: Workspace) -> RunSandbox:
    """Record the base commit of the job and the sandbox of the run; return the sandbox."""
    run = plan.run
    sandbox = workspace.sandbox
    assert sandbox is not None  # noqa: S101 - a run has its sandbox
    if plan.pinned_base is None:
        await run.step(BASE, lambda _: workspace.base_sha, owner=Owner.WORKER)
        await run.step(BRANCH, lambda _: workspace.branch, owner=Owner.WORKER)
        resolved = plan.repository.as_event(workspace.base_sha)
        await run.event("repo_resolved", resolved, Owner.WORKER)
        await _say_what_is_missing(run, workspace)
    await run.event("sandbox_applied", sandbox.as_event(plan.agent.network), Owner.WORKER)
    return sandbox


async def _say_what_is_missing(run: WorkerRun, workspace: Workspace) -> None:
    """Tell people without which parts of the repository the job works."""
    if not (parts := workspace.missing_parts):
        return
    await run.event(INCOMPLETE, {"parts": [part.as_json() for part in parts]}, Owner.WORKER)
    text = f"{run.job.name} works without {'; and without '.join(part.text for part in parts)}"
    notify = run.services.outbox.notify
    await run.wait(notify, run.job.lease, INCOMPLETE, (), text, required=False)


async def _open_session(
    plan: IterationPlan, workspace: Workspace, usage: dict[str, Any]
) -> AgentSession:
    """Return the session of the agent, with the work and the usage of the job so far."""
    run = plan.run
    work = SavedWork(
        run,
        workspace,
        repo=plan.repository.pinned,
        commit=await workspace.bundle_commit() if plan.bundle else None,
        data=plan.checkpoint.get("agent"),
    )
    run.code_owners = partial(owners_of_changes, run, workspace, work.patch)
    budget = budgets.own_budget(plan.saved.profile.budget if plan.saved else None)
    metered = plan.agent.gateway is not None
    meter = UsageMeter(run, usage, budget, metered=metered)
    return AgentSession(run, workspace, work, meter)


async def _set_up(
    plan: IterationPlan, workspace: Workspace, session: AgentSession, deadline: datetime
) -> StartMessage:
    """Run the setup commands, and return the first message to the agent."""
    run = plan.run
    await run_setup(run, workspace, plan.saved)
    if plan.sets_up_on_base:
        await workspace.restore()
    start = await build_start_message(
        plan,
        workspace,
        deadline=deadline,
        messages=await session.messages.for_start(),
        attachments=await write_attachments(run, workspace),
    )
    parameters = run_parameters(plan, workspace, start)
    await run.describe(parameters)
    session.grace.on_continue = partial(run.describe, parameters)
    started = {"iteration": plan.iteration.number, "runner": f"draftsman {installed()}"}
    started |= {name: parameters[name] for name in ("agent", "version") if name in parameters}
    await run.event("iteration_started", started, Owner.WORKER)
    return start


async def _run_program(
    plan: IterationPlan,
    workspace: Workspace,
    sandbox: RunSandbox,
    session: AgentSession,
    start: StartMessage,
) -> None:
    """Start the agent and handle its messages until it exits; park it on shutdown or pause.

    Raises Parked if its question parked the run while it was running.
    """
    run = plan.run
    agent = plan.agent
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def on_stderr(chunk: bytes) -> None:
        if await session.grace.may_write():
            await run.log_stream(decoder.decode(chunk))
        else:
            session.dropped.add_output(chunk)

    async def respond(line: bytes) -> bytes:
        return await session.answer_program(await started, line)

    started = asyncio.get_running_loop().create_future()
    folder = socket_folder(workspace.folder)
    sandbox = replace(sandbox, socket=folder)
    async with (
        serve_run_socket(folder, sandbox.uid, respond),
        open_gateway(run, agent, sandbox, session, repo=start.repo, respond=respond) as gateway,
        open_network_proxy(
            http=run.settings.http,
            network=agent.network,
            sandbox=sandbox,
            limits=run.limits,
            setting=AGENT_SETTING,
            log=run.log_line,
        ) as proxy,
        await AgentProcess.start(
            agent,
            cwd=workspace.path,
            home=workspace.home,
            lease=run.settings.worker.stop_after,
            on_stderr=on_stderr,
            sandbox=sandbox,
            gateway=gateway,
            proxy=proxy,
        ) as process,
    ):
        started.set_result(process)
        run.on_heartbeat(process.heartbeat)
        run.on_heartbeat(session.messages.wake)
        process.post(encode(start))
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
    if run.parked:
        await run.log_parked(session.dropped.text)
        raise Parked
    await session.store_progress()
    await run.exited(session.exit_code)


async def _park(run: WorkerRun, session: AgentSession) -> None:
    """Ask people, and show the patch of the latest checkpoint, from which the next run starts.

    Work after that checkpoint is lost, so the patch does not have it.
    """
    if (patch := await session.work.patch()) is not None:
        await run.patch(patch)
    await asyncio.gather(
        *(run.ask_or_park(question, session.work.patch_sha256) for question in session.questions)
    )
