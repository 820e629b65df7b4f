"""Choice of a job's agent, and its settings in the repository of the job."""

from __future__ import annotations

from typing import Final

from draftsman.agent_runs.repository import JobRepository
from draftsman.errors import ConfigError, Failure, NotOnThisWorker
from draftsman.handlers.worker_run import WorkerRun
from draftsman.repos.repo_profile import RepoProfile
from draftsman.settings import Settings
from draftsman.settings.agents import AgentSettings
from draftsman.settings.network import intersect

DEFAULT_AGENT: Final = "tidy"
AGENT_SETTING: Final = (
    "network of its [agents.NAME], and of the profile of its repository if that has a list; or to"
    " a group in [networks]"
)
"""Where the hosts of an agent are listed."""


def choose_agent(run: WorkerRun, repository: JobRepository) -> tuple[str, AgentSettings]:
    """Return the agent of the job or its repository, with environment and network of the profile.

    Its network has hosts instead of groups. Raises Failure `no_such_agent`, `network`.
    """
    profile = repository.saved.profile if repository.saved else None
    name = run.job.agent_request.agent or (profile and profile.agent)
    name = name or run.settings.default_agent or DEFAULT_AGENT
    agent = run.settings.agents.get(name)
    if agent is None:
        names = ", ".join(sorted(run.settings.agents))
        text = f"no agent {name!r} on this worker; configured agents: {names}"
        raise NotOnThisWorker(text, origin="agent", code="no_such_agent")
    try:
        agent.plugin  # noqa: B018 - raises
    except ConfigError as error:
        raise NotOnThisWorker(str(error), origin="agent", code="no_such_agent") from error
    network = run.settings.resolve_network(agent.network)
    if profile is None:
        return name, agent.model_copy(update={"network": network})
    network = intersect(network, profile_network(run.settings, profile))
    return name, agent.model_copy(update={"env": profile.env | agent.env, "network": network})


def profile_network(settings: Settings, profile: RepoProfile) -> bool | tuple[str, ...]:
    """Return the network of a profile without groups; raises Failure `network`."""
    try:
        return settings.resolve_network(profile.network)
    except ValueError as error:
        text = f"network of the repository's profile: {error}"
        raise Failure(text, origin="agent", code="network", declared="PERMANENT") from None
