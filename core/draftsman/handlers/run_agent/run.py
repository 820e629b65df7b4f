"""`run_agent`: run of an agent in a clone of the job's repository.

    repository -> mirror -> clone -> agent (JSON lines) -> snapshot -> branch, patch, result

All state is in PostgreSQL, so that any host can resume the job: each checkpoint of the agent is
stored with a bundle of the work in progress.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from draftsman.domain.job import Mode
from draftsman.domain.messages.plain_text import pr_url
from draftsman.domain.outcome import Done, Outcome
from draftsman.domain.question import QuestionSpec
from draftsman.domain.repos.repo_profile import effective_profile
from draftsman.domain.reserved_names import KEYS, Owner
from draftsman.errors import Failure
from draftsman.handlers.clone.clone_cleanup import clone_tag
from draftsman.handlers.clone.workspace import Snapshot, Workspace
from draftsman.handlers.context import RunContext
from draftsman.handlers.run_agent.agent_session import AgentSession
from draftsman.handlers.run_agent.protocol import (
    AnswerBody,
    Profile,
    RequestBody,
    StartMessage,
    StepState,
)
from draftsman.handlers.run_agent.protocol_codec import encode
from draftsman.handlers.run_agent.repository import JobRepository, resolve_repository
from draftsman.handlers.run_agent.validation import add_validation, run_setup, validate
from draftsman.handlers.subprocesses.process import AgentProcess
from draftsman.services.repos import SavedProfile
from draftsman.settings import AgentSettings

BASE: Final = "agent:base"
"""Step that pins the base commit."""
PUBLISH: Final = "agent:publish"
PUSH: Final = "agent:push:"
"""Prefix of steps of runs that pushed, whose invocation ids are the commits."""
COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
DEFAULT_AGENT: Final = "tidy"


async def run_agent(ctx: RunContext) -> Outcome:
    """Run the job's agent; park for its questions, resume from its latest checkpoint."""
    checkpoint, bundle = await ctx.saved_work()
    repository = await resolve_repository(ctx, (checkpoint or {}).get("repo"))
    agent = _find_agent(ctx, repository)
    steps = await ctx.steps(Owner.WORKER)
    pinned = steps[BASE].result if BASE in steps else None
    workspace = await Workspace.prepare(
        ctx.settings.data_dir,
        repository.source,
        job=ctx.job.number,
        run=ctx.job.run,
        tag=clone_tag(ctx.job.id),
        base=pinned or (checkpoint or {}).get("base_sha") or repository.ref,
        bundle=bundle,
        created_at=ctx.job.created_at,
        http=ctx.settings.http,
    )
    try:
        workspace = await workspace.with_sandbox(ctx.settings.sandbox)
        if pinned is None:
            await ctx.worker_step(BASE, lambda _: workspace.base_sha)
            await ctx.event("repo_resolved", repository.as_event(workspace.base_sha), Owner.WORKER)
        assert workspace.sandbox is not None  # noqa: S101 - see above
        await ctx.event("sandbox_applied", workspace.sandbox.as_event(agent.network), Owner.WORKER)
        await run_setup(ctx, workspace, repository.saved)
        checkpoint_commit = await workspace.bundle_commit() if bundle else None
        session = AgentSession(ctx, workspace, repository.pinned, checkpoint_commit)
        await _run_session(
            ctx,
            agent,
            workspace,
            session,
            await _start_message(ctx, agent, workspace, repository, checkpoint),
        )
        ctx.ending = False
        if session.question is not None:
            await _park(ctx, session, session.question)
        return await _finish_job(ctx, workspace, session, repository.saved)
    finally:
        with contextlib.suppress(Failure, OSError):
            await workspace.remove()


async def _run_session(
    ctx: RunContext,
    agent: AgentSettings,
    workspace: Workspace,
    session: AgentSession,
    start: StartMessage,
) -> None:
    """Start the agent and handle its messages until it exits; park it on shutdown."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def on_stderr(chunk: bytes) -> None:
        await ctx.log_stream(decoder.decode(chunk))

    lease = ctx.settings.worker.lease
    async with await AgentProcess.start(
        agent,
        cwd=workspace.path,
        home=workspace.home,
        lease=lease,
        on_stderr=on_stderr,
        sandbox=workspace.sandbox,
    ) as process:
        ctx.on_heartbeat(process.heartbeat)
        await process.send(encode(start))
        listener = asyncio.create_task(session.listen(process))
        disk = asyncio.create_task(session.watch_disk(process))
        try:
            await asyncio.shield(listener)
        except asyncio.CancelledError:
            if ctx.stopping == "shutdown":
                await session.park(process, None)
                await asyncio.wait([listener], timeout=ctx.settings.worker.abort)
            raise
        finally:
            ctx.ending = True
            process.kill()  # its exit ends the listener even if a cancellation is lost
            listener.cancel()
            disk.cancel()
            await asyncio.gather(listener, disk, return_exceptions=True)


async def _park(ctx: RunContext, session: AgentSession, question: QuestionSpec) -> None:
    """Ask people, and show the patch of the latest checkpoint, from which the next run starts.

    Work after that checkpoint is lost, so the patch does not have it.
    """
    if (patch := await session.patch()) is not None:
        await ctx.patch(patch)
    await ctx.ask_or_park(question, session.patch_sha256)


async def _finish_job(
    ctx: RunContext, workspace: Workspace, session: AgentSession, profile: SavedProfile | None
) -> Done:
    """Store the patch, publish the branch and return the job's result."""
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
    snapshot = await workspace.snapshot(_commit_message(ctx, session.result.summary))
    result["files_changed"] = snapshot.files_changed
    if snapshot.files_changed == 0:
        if await ctx.has_patch():  # of an earlier run that asked a question
            await ctx.patch(b"")
        return await _to_done(ctx, workspace, result)
    result |= {"insertions": snapshot.insertions, "deletions": snapshot.deletions}
    await ctx.patch(await workspace.diff(snapshot))
    if ctx.job.mode is Mode.FIX:
        result = add_validation(result, await validate(ctx, workspace, profile))
        result["commit"] = await ctx.worker_step(
            PUBLISH, lambda _: _publish(ctx, workspace, snapshot)
        )
        result["branch"] = workspace.branch
        published = {"branch": workspace.branch, "commit": snapshot.commit}
        await ctx.event("branch_published", published, Owner.WORKER)
    return await _to_done(ctx, workspace, result)


async def _to_done(ctx: RunContext, workspace: Workspace, result: dict[str, Any]) -> Done:
    """Return the outcome with the agent's pull request and without paths of the worker."""
    if (url := pr_url(result)) is not None:
        result["pr_url"] = url
        line_delta = result.get("insertions", 0) - result.get("deletions", 0)
        payload = {"pr_url": url, "files_changed": result["files_changed"], "loc_delta": line_delta}
        await ctx.event("pr_created", payload, Owner.WORKER)
    return Done(workspace.relative(result))


async def _publish(ctx: RunContext, workspace: Workspace, snapshot: Snapshot) -> str:
    """Push the branch, over commits of earlier runs of this job only.

    Such a run died before it could record the push, and an agent that runs again makes another
    commit. Raises Failure `branch_moved`, …
    """
    steps = await ctx.steps(Owner.WORKER)
    pushed = [step.invocation_id for key, step in steps.items() if key.startswith(PUSH)]
    key = f"{PUSH}{ctx.job.run}"
    await ctx.note_step(key, snapshot.commit, Owner.WORKER)
    await _push(workspace, snapshot, [commit for commit in pushed if COMMIT.fullmatch(commit)])
    await ctx.finish_step(key, snapshot.commit, Owner.WORKER)
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


async def _start_message(
    ctx: RunContext,
    agent: AgentSettings,
    workspace: Workspace,
    repository: JobRepository,
    checkpoint: dict[str, Any] | None,
) -> StartMessage:
    answers = {
        key: AnswerBody(
            outcome=answer.outcome,
            value=getattr(answer, "value", None),
            text=getattr(answer, "text", None),
            by=getattr(answer, "by", ()),
            at=getattr(answer, "at", None),
            reason=getattr(answer, "reason", None),
        )
        for key, answer in (await ctx.answers()).items()
        if not key.startswith(KEYS)
    }
    steps = {
        key: StepState.model_validate(
            {"state": step.status, "invocation_id": step.invocation_id, "result": step.result}
        )
        for key, step in (await ctx.steps()).items()
    }
    repo_profile = repository.saved.profile if repository.saved else None
    profile = Profile.of(
        effective_profile(repo_profile, ctx.settings.profile_of(repository.location.repo.full_name))
    )
    skills = (*ctx.job.requested_skills, *(repo_profile.default_skills if repo_profile else ()))
    extra = {
        "path": repo_profile.path if repo_profile else "",
        "skills": tuple(dict.fromkeys(skills)),
    }
    profile = profile.model_copy(update=extra)
    return StartMessage(
        job=ctx.job.name,
        run=ctx.job.run,
        repo=repository.source,
        workspace=workspace.sandbox_path,
        branch=workspace.branch,
        base_sha=workspace.base_sha,
        checkpoint=(checkpoint or {}).get("agent"),
        steps=steps,
        answers=answers,
        deadline=datetime.now(UTC) + timedelta(seconds=ctx.deadline),
        mode=ctx.job.mode.value,
        request=RequestBody(title=ctx.job.ticket_title, text=ctx.job.ticket_text),
        profile=profile,
        limits=repo_profile.limits | {"network": agent.network} if repo_profile else {},
    )


def _find_agent(ctx: RunContext, repository: JobRepository) -> AgentSettings:
    """Return the agent of the job or its repository, with the environment of the profile."""
    profile = repository.saved.profile if repository.saved else None
    name = (
        ctx.job.agent or (profile and profile.agent) or ctx.settings.default_agent or DEFAULT_AGENT
    )
    agent = ctx.settings.agents.get(name)
    if agent is None:
        names = ", ".join(sorted(ctx.settings.agents))
        text = f"no agent {name!r} on this worker; configured agents: {names}"
        raise Failure(text, origin="agent", code="no_such_agent")
    if profile is None:
        return agent
    network = agent.network and profile.network
    return agent.model_copy(update={"env": profile.env | agent.env, "network": network})


def _repo_name(ctx: RunContext) -> str:
    name = ctx.job.repo_name or ""
    return f"{ctx.job.repo_owner}/{name}" if ctx.job.repo_owner else name


def _commit_message(ctx: RunContext, summary: str) -> str:
    title = ctx.job.ticket_title or f"{ctx.job.agent or DEFAULT_AGENT} on {Path(_repo_name(ctx))}"
    return f"{title}\n\n{summary}\n\nMade by draftsman, {ctx.job.name}."
