"""`run_agent`: drive a program in a clone of the repository until it is done or must wait.

    repository -> mirror -> clone -> agent (JSON lines) -> snapshot -> branch, patch, result

What the worker keeps of it is in PostgreSQL, so that any host can go on: each of the agent's
checkpoints is stored with a bundle of the work in progress.
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
    encode,
)
from draftsman.handlers.run_agent.repository import JobRepository, resolve_repository
from draftsman.handlers.run_agent.validation import add_validation, run_setup, validate
from draftsman.handlers.subprocesses.process import AgentProcess
from draftsman.services.repos import SavedProfile
from draftsman.settings import AgentSettings

BASE: Final = "agent:base"
"""Step that pins the commit the work starts from."""
PUBLISH: Final = "agent:publish"
PUSH: Final = "agent:push:"
"""Steps, one for each run that came to push: their invocation ids are the commits."""
COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
DEFAULT_AGENT: Final = "tidy"


async def run_agent(ctx: RunContext) -> Outcome:
    """Run the job's agent; parks when it asks, resumes from its last checkpoint."""
    data, bundle = await ctx.saved_work()
    found = await resolve_repository(ctx, (data or {}).get("repo"))
    agent = _agent(ctx, found)
    steps = await ctx.steps(Owner.WORKER)
    pinned = steps[BASE].result if BASE in steps else None
    space = await Workspace.prepare(
        ctx.settings.data_dir,
        found.source,
        job=ctx.job.number,
        run=ctx.job.run,
        tag=clone_tag(ctx.job.id),
        base=pinned or (data or {}).get("base_sha") or found.ref,
        bundle=bundle,
        created_at=ctx.job.created_at,
        http=ctx.settings.http,
    )
    try:
        space = await space.with_sandbox(ctx.settings.sandbox)
        if pinned is None:
            await ctx.worker_step(BASE, lambda _: space.base_sha)
            await ctx.event("repo_resolved", found.as_event(space.base_sha), Owner.WORKER)
        assert space.box is not None  # noqa: S101 - it is confined
        await ctx.event("sandbox_applied", space.box.as_event(agent.network), Owner.WORKER)
        await run_setup(ctx, space, found.saved)
        saved = await space.bundle_commit() if bundle else None
        talk = AgentSession(ctx, space, found.pinned, saved)
        await _drive(ctx, agent, space, talk, await _start(ctx, agent, space, found, data))
        ctx.ending = False
        if talk.question is not None:
            await _park(ctx, talk, talk.question)
        return await _deliver(ctx, space, talk, found.saved)
    finally:
        with contextlib.suppress(Failure, OSError):
            await space.remove()


async def _drive(
    ctx: RunContext,
    agent: AgentSettings,
    space: Workspace,
    talk: AgentSession,
    start: StartMessage,
) -> None:
    """Start the agent and talk with it until it exits; when we have to stop, park it first."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def on_stderr(chunk: bytes) -> None:
        await ctx.log_stream(decoder.decode(chunk))

    lease = ctx.settings.worker.lease
    async with await AgentProcess.start(
        agent, cwd=space.path, home=space.home, lease=lease, on_stderr=on_stderr, box=space.box
    ) as process:
        ctx.on_heartbeat(process.heartbeat)
        await process.send(encode(start))
        pump = asyncio.create_task(talk.listen(process))
        disk = asyncio.create_task(talk.watch_disk(process))
        try:
            await asyncio.shield(pump)
        except asyncio.CancelledError:
            if ctx.stopping == "shutdown":
                await talk.park(process, None)
                await asyncio.wait([pump], timeout=ctx.settings.worker.abort)
            raise
        finally:
            ctx.ending = True
            process.kill()  # its end is the end of the pump, should a cancellation be lost
            pump.cancel()
            disk.cancel()
            await asyncio.gather(pump, disk, return_exceptions=True)


async def _park(ctx: RunContext, talk: AgentSession, question: QuestionSpec) -> None:
    """Ask people, with the patch of the latest checkpoint: what the next run starts with.

    Work after that checkpoint is lost, so nobody is shown it.
    """
    if (patch := await talk.patch()) is not None:
        await ctx.patch(patch)
    await ctx.ask_or_park(question, talk.patch_sha256)


async def _deliver(
    ctx: RunContext, space: Workspace, talk: AgentSession, saved: SavedProfile | None
) -> Done:
    """Turn the finished tree into a patch, a branch and the job's result."""
    if talk.error is not None:
        talk.error.program_exit = talk.exit_code
        raise talk.error
    if talk.result is None:
        raise Failure(
            f"the agent exited with code {talk.exit_code} and gave no result",
            origin="agent",
            code="protocol" if talk.exit_code == 0 else "exit",
            program_exit=talk.exit_code,
        )
    result: dict[str, Any] = {"summary": talk.result.summary, "data": talk.result.data}
    snapshot = await space.snapshot(_message(ctx, talk.result.summary))
    result["files_changed"] = snapshot.files_changed
    if snapshot.files_changed == 0:
        if await ctx.has_patch():  # of an earlier run, which asked with it
            await ctx.patch(b"")
        return await _done(ctx, space, result)
    result |= {"insertions": snapshot.insertions, "deletions": snapshot.deletions}
    await ctx.patch(await space.diff(snapshot))
    if ctx.job.mode is Mode.FIX:
        result = add_validation(result, await validate(ctx, space, saved))
        result["commit"] = await ctx.worker_step(PUBLISH, lambda _: _publish(ctx, space, snapshot))
        result["branch"] = space.branch
        published = {"branch": space.branch, "commit": snapshot.commit}
        await ctx.event("branch_published", published, Owner.WORKER)
    return await _done(ctx, space, result)


async def _done(ctx: RunContext, space: Workspace, result: dict[str, Any]) -> Done:
    """Return the outcome, with the agent's pull request and without the worker's own paths."""
    if (url := pr_url(result)) is not None:
        result["pr_url"] = url
        lines = result.get("insertions", 0) - result.get("deletions", 0)
        made = {"pr_url": url, "files_changed": result["files_changed"], "loc_delta": lines}
        await ctx.event("pr_created", made, Owner.WORKER)
    return Done(space.relative(result))


async def _publish(ctx: RunContext, space: Workspace, snapshot: Snapshot) -> str:
    """Write the branch; over what an earlier run of this job wrote, and over nobody else's work.

    Such a run died before it could record that it was done, and an agent that works again makes
    something else. Raises Failure `branch_moved`, …
    """
    steps = await ctx.steps(Owner.WORKER)
    pushed = [step.invocation_id for key, step in steps.items() if key.startswith(PUSH)]
    key = f"{PUSH}{ctx.job.run}"
    await ctx.note_step(key, snapshot.commit, Owner.WORKER)
    await _push(space, snapshot, [commit for commit in pushed if COMMIT.fullmatch(commit)])
    await ctx.finish_step(key, snapshot.commit, Owner.WORKER)
    return snapshot.commit


async def _push(space: Workspace, snapshot: Snapshot, ours: list[str]) -> None:
    for expected in (None, *ours):
        try:
            await space.publish(snapshot, expected)
        except Failure as error:
            if error.code != "branch_moved":
                raise
            moved = error
        else:
            return
    raise moved


async def _start(
    ctx: RunContext,
    agent: AgentSettings,
    space: Workspace,
    found: JobRepository,
    data: dict[str, Any] | None,
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
    kept = found.saved.profile if found.saved else None
    profile = Profile.of(
        effective_profile(kept, ctx.settings.profile_of(found.place.repo.full_name))
    )
    skills = (*ctx.job.requested_skills, *(kept.default_skills if kept else ()))
    about = {"path": kept.path if kept else "", "skills": tuple(dict.fromkeys(skills))}
    profile = profile.model_copy(update=about)
    return StartMessage(
        job=ctx.job.name,
        run=ctx.job.run,
        repo=found.source,
        workspace=space.sandbox_path,
        branch=space.branch,
        base_sha=space.base_sha,
        checkpoint=(data or {}).get("agent"),
        steps=steps,
        answers=answers,
        deadline=datetime.now(UTC) + timedelta(seconds=ctx.deadline),
        mode=ctx.job.mode.value,
        request=RequestBody(title=ctx.job.ticket_title, text=ctx.job.ticket_text),
        profile=profile,
        limits=kept.limits | {"network": agent.network} if kept else {},
    )


def _agent(ctx: RunContext, found: JobRepository) -> AgentSettings:
    """Return the job's agent, else its repository's, with the variables of the latter."""
    kept = found.saved.profile if found.saved else None
    name = ctx.job.agent or (kept and kept.agent) or ctx.settings.default_agent or DEFAULT_AGENT
    agent = ctx.settings.agents.get(name)
    if agent is None:
        known = ", ".join(sorted(ctx.settings.agents))
        text = f"there is no agent {name!r} on this worker; configured are: {known}"
        raise Failure(text, origin="agent", code="no_such_agent")
    if kept is None:
        return agent
    network = agent.network and kept.network
    return agent.model_copy(update={"env": kept.env | agent.env, "network": network})


def _repo_name(ctx: RunContext) -> str:
    name = ctx.job.repo_name or ""
    return f"{ctx.job.repo_owner}/{name}" if ctx.job.repo_owner else name


def _message(ctx: RunContext, summary: str) -> str:
    title = ctx.job.ticket_title or f"{ctx.job.agent or DEFAULT_AGENT} on {Path(_repo_name(ctx))}"
    return f"{title}\n\n{summary}\n\nMade by draftsman, {ctx.job.name}."
