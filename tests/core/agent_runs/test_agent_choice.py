"""The agent's own configuration of a repository: which agents it can be allowed for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draftsman.errors import UsageError
from draftsman.repos.repo_profile import profile
from draftsman.sandbox.processes.environment import agent_command, agent_environment
from draftsman.settings import Settings
from draftsman.settings.agents import AgentSettings
from draftsman_agents.declarations import NO_REPO_CONFIG


def known(name: str, **table: Any) -> AgentSettings:
    return Settings(agents={name: table}).agents[name]


def test_opencode_loads_the_configuration_of_a_repository_only_if_it_may() -> None:
    agent = known("opencode")
    assert (
        known("opencode", command=["/opt/bin/opencode.exe", "acp"]).repo_config_name == "opencode"
    )
    assert agent_environment(agent, Path("/home"))[NO_REPO_CONFIG] == "1"
    allowed = agent.with_repo_config()
    assert NO_REPO_CONFIG not in agent_environment(allowed, Path("/home"))
    assert "OPENCODE_PERMISSION" in allowed.env
    assert not agent.repo_config


def test_an_agent_has_the_name_of_its_kind() -> None:
    claude = known("claude", command=["/opt/other/name"])
    assert claude.repo_config_name == "claude"
    assert known("aider").repo_config_name is None
    assert "--repo-config" not in agent_command(claude)
    assert "--repo-config" in agent_command(claude.with_repo_config())


def test_other_names_are_refused() -> None:
    assert profile({"agent_config": ["claude", "codex", "opencode"]}).agent_config
    with pytest.raises(
        UsageError, match="agent_config has 'aider'; allowed: claude, codex, opencode"
    ):
        profile({"agent_config": ["aider"]})
