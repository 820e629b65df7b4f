"""What an iteration of an agent goes on from: its repository, agent and earlier work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from draftsman.agent_runs.agent_choice import choose_agent
from draftsman.agent_runs.clones.clone_parts import CloneParts
from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.commit_texts import job_fields
from draftsman.agent_runs.iteration import Iteration
from draftsman.agent_runs.repository import JobRepository, resolve_repository
from draftsman.agent_runs.validation.fresh_clone import setup_has_more_access
from draftsman.forges.api.connection import forge_of, git_location_of, git_login_of
from draftsman.forges.follow_up import FollowedPull
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.job import Mode
from draftsman.jobs.reserved_names import Owner
from draftsman.repos.repo_profile import LeftOut, RepoProfile, SavedProfile
from draftsman.settings import Settings
from draftsman.settings.agents import AgentSettings
from draftsman.settings.git import GitSettings


def open_source(settings: Settings, location: str) -> RepoSource:
    """Return the source at a path or URL, with the token of its forge."""
    login = git_login_of(settings, location)
    return RepoSource.of(location, settings.http, login, git_location_of(settings, location))


def parts_of(settings: Settings, profile: RepoProfile | None) -> CloneParts:
    """Return what clones have by a profile, besides the files of their commits."""
    if profile is None:
        return CloneParts()
    opens = partial(open_source, settings) if profile.submodules else None
    return CloneParts(profile.lfs, opens)


BASE: Final = "agent:base"
"""Step that pins the base commit."""
BRANCH: Final = "agent:branch"
"""Step that pins the branch of the work."""
CHANGES: Final = "agent:changes"
"""Step that pins the commit with the changes of the requester: its signature may differ."""


@dataclass(frozen=True, slots=True)
class IterationPlan:
    """The state of the job before an iteration, which the steps of the iteration share."""

    run: WorkerRun
    checkpoint: dict[str, Any]
    """The latest checkpoint; empty without one."""
    bundle: bytes | None
    """The work of the latest checkpoint."""
    repository: JobRepository
    agent_name: str
    agent: AgentSettings
    iteration: Iteration
    pinned_base: str | None
    """The base commit of earlier runs."""
    pinned_branch: str | None
    """The branch of earlier runs."""
    pinned_changes: str | None
    """The commit with changes of the requester that earlier runs wrote, as git stores it."""
    followed: FollowedPull | None
    """The pull request that the job follows up on, with its base branch on the forge now."""

    @property
    def source(self) -> RepoSource:
        """The source of the repository; raises Failure `not_a_repository`."""
        return open_source(self.run.settings, self.repository.source)

    @property
    def parts(self) -> CloneParts:
        """What clones have besides the files of their commits."""
        return parts_of(self.run.settings, None if self.saved is None else self.saved.profile)

    @property
    def base_branch(self) -> str | None:
        """The branch that the work is merged into, by its ref; None: the default of the source."""
        return self.repository.ref if self.followed is None else self.followed.base

    @property
    def saved(self) -> SavedProfile | None:
        """The profile of the repository."""
        return self.repository.saved

    @property
    def git(self) -> GitSettings:
        """How work is committed, by the configuration and the profile."""
        own = None if self.saved is None else self.saved.profile.git
        return self.run.settings.git.override(own)

    @property
    def title(self) -> str:
        """The title of the request; without one, the agent and the repository."""
        job = self.run.job
        return job.own_title or f"{self.agent_name} on {Path(job.agent_request.repo_name or '')}"

    async def name_fields(self) -> dict[str, str]:
        """Return the fields of the job for the templates of branches and messages."""
        run = self.run
        return job_fields(
            run.job.number,
            title=run.job.own_title or "",
            url=await run.wait(run.services.checkpoints.ticket_url, run.job.number),
            requester=run.job.invoker_id,
            agent=self.agent_name,
        )

    @property
    def max_iterations(self) -> int:
        """Iterations after which people decide about failed work."""
        return 1 if self.saved is None else self.saved.profile.max_iterations

    @property
    def left_out(self) -> LeftOut:
        """What becomes of files that git leaves out; only published work is complete or asks."""
        if self.run.job.agent_request.mode is not Mode.FIX:
            return "leave"
        return "ask" if self.saved is None else self.saved.profile.left_out

    @property
    def sets_up_on_base(self) -> bool:
        """Whether the setup commands run before the clone has the work of earlier runs.

        Otherwise the agent could give them code to run with a network that it does not have.
        """
        return self.iteration.result is None and setup_has_more_access(
            self.run, self.saved, self.agent.network
        )


async def plan_iteration(run: WorkerRun) -> IterationPlan:
    """Return the plan of the next iteration; parks the job to ask for its repository."""
    saved_checkpoint, bundle = await run.saved_work()
    checkpoint = saved_checkpoint or {}
    repository = await resolve_repository(run, checkpoint.get("repo"))
    agent_name, agent = choose_agent(run, repository)
    if run.job.agent_request.agent is None:
        await run.assign_agent(agent_name)
    steps = await run.steps(Owner.WORKER)
    return IterationPlan(
        run=run,
        checkpoint=checkpoint,
        bundle=bundle,
        repository=repository,
        agent_name=agent_name,
        agent=agent,
        iteration=Iteration.latest(steps),
        pinned_base=steps[BASE].result if BASE in steps else None,
        pinned_branch=steps[BRANCH].result if BRANCH in steps else None,
        pinned_changes=steps[CHANGES].result if CHANGES in steps else None,
        followed=await _followed_pull(run, repository.source),
    )


async def _followed_pull(run: WorkerRun, location: str) -> FollowedPull | None:
    """Return the pull request that the job follows up on; people may have changed its base."""
    followed = await run.wait(run.services.workflows.followed_pull, run.job.number)
    forge = forge_of(run.settings, location)
    if followed is None or forge is None:
        return followed
    return replace(followed, base=(await forge.get(followed.number)).base)
