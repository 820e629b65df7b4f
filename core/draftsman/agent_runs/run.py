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
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from draftsman.agent_runs.agent_choice import AGENT_SETTING, choose_agent
from draftsman.agent_runs.clones.branch_work import branch_work
from draftsman.agent_runs.clones.tree_removal import clone_tag
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.completion import WorkCompletion
from draftsman.agent_runs.iteration import Iteration
from draftsman.agent_runs.policy_check import current_policy, owners_of_changes
from draftsman.agent_runs.protocol.agent_messages import ResultMessage
from draftsman.agent_runs.protocol.codec import encode
from draftsman.agent_runs.protocol.protocol import StartMessage
from draftsman.agent_runs.protocol.start_message import build_start_message, run_parameters
from draftsman.agent_runs.repository import JobRepository, resolve_repository
from draftsman.agent_runs.session.agent_gateway import open_gateway
from draftsman.agent_runs.session.agent_session import AgentSession
from draftsman.agent_runs.session.run_socket import serve_run_socket, socket_folder
from draftsman.agent_runs.session.saved_work import SavedWork
from draftsman.agent_runs.session.usage_meter import UsageMeter
from draftsman.agent_runs.validation.fresh_clone import run_setup, setup_has_more_access
from draftsman.agent_runs.written_attachments import write_attachments
from draftsman.costs import budgets
from draftsman.costs.budgets import own_budget
from draftsman.errors import Failure
from draftsman.forges.api.connection import git_login_of
from draftsman.forges.follow_up import FollowedPull
from draftsman.handlers.context import RunContext, worker_run
from draftsman.handlers.worker_run import WorkerRun, to_answer
from draftsman.jobs.reserved_names import Owner
from draftsman.jobs.runs.outcome import Done, Outcome, Parked
from draftsman.questions.answer import parse_amount
from draftsman.questions.question import BUDGET_KEY, Answered, OnExpire
from draftsman.questions.question_spec import Choice, QuestionSpec
from draftsman.sandbox.network_proxy.access import open_network_proxy
from draftsman.sandbox.processes.process import AgentProcess
from draftsman.settings.agents import AgentSettings
from draftsman.version import installed

# Jobs that follow up on a pull request: the branch that they continue, and their bound.


KEY: Final = "agent:follow_ups"
"""Key of the question after the last follow-up, and of the step that records to go on."""
GO_ON: Final = "go on"
HAND_OVER: Final = "hand over"
STOP: Final = "stop"


async def left_to_people(
    run: WorkerRun, repository: JobRepository, followed: FollowedPull | None
) -> Done | None:
    """Return the end of a follow-up that hands the pull request over; None to go on.

    After `max_follow_ups` people are asked; parks until they answer. Raises Failure to stop.
    """
    if followed is None:
        return None
    policy = await current_policy(run, repository.location)
    limit = policy.settings.max_follow_ups
    if followed.ordinal <= followed.allowed + limit:
        return None
    answer = (await run.answers()).get(KEY)
    if answer is None:
        answer = await run.ask_or_park(question_about(followed, limit))
    value = answer.value if isinstance(answer, Answered) else STOP
    if value == GO_ON:
        await run.step(KEY, lambda _: GO_ON, owner=Owner.WORKER)
        return None
    if value == HAND_OVER:
        summary = f"{followed.url} was handed over to people"
        return Done({"summary": summary, "handed_over": True, "files_changed": 0})
    raise Failure(
        f"stopped after {followed.ordinal - 1} follow-ups on {followed.url}",
        origin="agent",
        code="limit:max_follow_ups",
        declared="PERMANENT",
    )


def question_about(followed: FollowedPull, limit: int) -> QuestionSpec:
    """Return the question whether follow-ups go on; without an answer in time this one stops."""
    return QuestionSpec(
        key=KEY,
        text=f"{followed.url} had {followed.ordinal - 1} follow-ups. Go on, hand over, or stop?",
        choices=(
            Choice(value=GO_ON, label="Go on", description=f"Up to {limit} more follow-ups"),
            Choice(value=HAND_OVER, label="Hand over", description="No more follow-ups"),
            Choice(value=STOP, label="Stop", description="This follow-up fails"),
        ),
        on_expire=OnExpire.DEFAULT,
        default=STOP,
    )


async def work_of_branch(
    run: WorkerRun,
    repository: JobRepository,
    checkpoint: Mapping[str, Any] | None,
    followed: FollowedPull | None,
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of `Workspace.prepare` about the branch, and the base.

    The first run continues the branch as it is now, with commits of people; later runs, and a
    retry, continue their checkpoint.
    """
    if followed is None:
        return {}, None
    own = (checkpoint or {}).get("follow_up") or {}
    if own and own["job"] in (run.job.number, run.job.retry_of):
        return {"branch": followed.branch, "parents": tuple(own["parents"])}, None
    found = await branch_work(
        run.settings.data_dir,
        repository.source,
        followed.branch,
        followed.base,
        str((checkpoint or {}).get("base_sha") or ""),
        job=run.job.number,
        http=run.settings.http,
        login=git_login_of(run.settings, repository.source),
    )
    if found is None:
        return {"branch": followed.branch}, None
    fields = {"branch": followed.branch, "parents": found.parents, "work": found.work}
    return fields, found.base or None


# The answer to the question at a budget that is used up, applied at the start of the next run.


async def apply_answer(run: WorkerRun) -> None:
    """Raise the budget by the amount that a person answered, once.

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


BASE: Final = "agent:base"
"""Step that pins the base commit."""


async def run_agent(ctx: RunContext) -> Outcome:
    """Run the job's agent; park for its questions, resume from its latest checkpoint."""
    run = worker_run(ctx)
    usage = dict[str, Any]()
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
    # else the agent could give the setup commands code to run with a network that it does not have
    on_base = iteration.result is None and setup_has_more_access(
        run, repository.saved, agent.network
    )
    followed = await run.wait(run.services.workflows.followed_pull, run.job.number)
    if (done := await left_to_people(run, repository, followed)) is not None:
        return done
    branch, base = await work_of_branch(run, repository, checkpoint, followed)
    workspace = await Workspace.prepare(
        run.settings.data_dir,
        repository.source,
        job=run.job.number,
        run=run.job.run,
        tag=clone_tag(run.job.id),
        base=base or (checkpoint or {}).get("base_sha") or pinned or repository.ref,
        bundle=bundle,
        **branch,
        restored=not on_base,
        created_at=run.job.created_at,
        http=run.settings.http,
        login=git_login_of(run.settings, repository.source),
    )
    try:
        workspace = await workspace.with_sandbox(run.settings.sandbox)
        if pinned is None:
            await run.step(BASE, lambda _: workspace.base_sha, owner=Owner.WORKER)
            await run.event("repo_resolved", repository.as_event(workspace.base_sha), Owner.WORKER)
        assert workspace.sandbox is not None  # noqa: S101 - see above
        await run.event("sandbox_applied", workspace.sandbox.as_event(agent.network), Owner.WORKER)
        checkpoint_commit = await workspace.bundle_commit() if bundle else None
        work = SavedWork(
            run,
            workspace,
            repository.pinned,
            checkpoint_commit,
            (checkpoint or {}).get("agent"),
        )
        run.code_owners = partial(owners_of_changes, run, workspace, work.patch)
        metered = agent.gateway is not None
        meter = UsageMeter(run, usage, _own_budget(repository), metered=metered)
        session = AgentSession(run, workspace, work, meter)
        if iteration.result is not None:
            session.result = ResultMessage.model_validate(iteration.result)
        elif not await session.is_budget_used():
            await run_setup(run, workspace, repository.saved)
            if on_base:
                await workspace.restore()
            start = await build_start_message(
                run,
                workspace,
                repository=repository,
                checkpoint=checkpoint,
                iteration=iteration,
                deadline=deadline,
                messages=await session.messages.for_start(),
                attachments=await write_attachments(run, workspace),
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
                await run.log_parked(session.dropped.text)
                raise Parked
            await session.store_progress()
            await run.exited(session.exit_code)
        run.ending = False
        if session.questions:
            await _park(run, session)
        return await WorkCompletion(
            run, workspace, session, repository.saved, agent, iteration, repository
        ).finish()
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
        else:
            session.dropped.add_output(chunk)

    async def respond(line: bytes) -> bytes:
        return await session.answer_program(await started, line)

    assert workspace.sandbox is not None  # noqa: S101 - a run has its sandbox
    started = asyncio.get_running_loop().create_future()
    folder = socket_folder(workspace.folder)
    sandbox = replace(workspace.sandbox, socket=folder)
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


async def _park(run: WorkerRun, session: AgentSession) -> None:
    """Ask people, and show the patch of the latest checkpoint, from which the next run starts.

    Work after that checkpoint is lost, so the patch does not have it.
    """
    if (patch := await session.work.patch()) is not None:
        await run.patch(patch)
    await asyncio.gather(
        *(run.ask_or_park(item, session.work.patch_sha256) for item in session.questions)
    )


def _own_budget(repository: JobRepository) -> dict[str, float]:
    """Return the budget of the job by the profile of its repository."""
    return own_budget(repository.saved.profile.budget if repository.saved else None)
