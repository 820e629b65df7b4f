"""Coding agents of other packages, from their table to the branch of a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from pydantic import ValidationError

from draftsman import plugins
from draftsman.errors import UsageError
from draftsman.jobs.job import Status
from draftsman.repos.repo_profile import profile
from draftsman.runtime import Runtime
from draftsman.sandbox.processes.agent_check import check_agent
from draftsman.settings import Settings
from draftsman.settings.agents import AgentPlugin, AgentSettings, demo_calls
from draftsman_testing.factories import Factory
from draftsman_tui.cli.setup.doctor_checks import packages
from tests.core.agent_runs.adapted_agents import adapted_worker, ended, lines_of
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_status
from tests.support.distributions import Distribution, installed

DECLARATION: Final = """
from draftsman.settings.agents import AgentPlugin, AgentSettings, DemoCall


class AcmeSettings(AgentSettings):
    tone: str = "plain"

    def adapter_options(self):
        return [*super().adapter_options(), f"--tone={self.tone}"]


AGENT = AgentPlugin(
    adapter="acme.adapter",
    settings=AcmeSettings,
    has_repo_config=True,
    no_repo_config=("ACME_SAFE",),
    demo=DemoCall(provider="openai", tool="run"),
    table={
        "kind": "acme",
        "command": ("sh", "-c", 'cat > prompt.txt; echo "$ACME_SAFE$PYTHONPATH"'),
        "env": {"ACME_SAFE": "1"},
    },
)
"""
ADAPTER: Final = """
import sys

from draftsman.agents.adapter import main
from draftsman.agents.plain import PlainAdapter


class Acme(PlainAdapter):
    @classmethod
    def add_options(cls, parser):
        super().add_options(parser)
        parser.add_argument("--tone")

    def __init__(self, client, options):
        super().__init__(client, options)
        self.template = f"Be {options.tone}. {self.template}"


if __name__ == "__main__":
    sys.exit(main("acme.adapter", Acme))
"""


def acme(source: str = DECLARATION) -> Distribution:
    """Return the package with the agent, or with another text of its declaration."""
    return Distribution(
        "acme-agent",
        "0.3",
        {"acme": "acme.agent:AGENT"},
        {"acme.__init__": "", "acme.agent": source, "acme.adapter": ADAPTER},
        group=plugins.AGENTS,
    )


@pytest.fixture
def package() -> Iterator[None]:
    """Install the package outside of /tmp, which is private to each run."""
    parent = Path(__file__).parent
    with TemporaryDirectory(prefix=".packages-", dir=parent) as name, installed(Path(name), acme()):
        yield


async def test_an_agent_of_another_package_works_with_its_adapter(
    package: None, rt: Runtime, make: Factory, tmp_path: Path
) -> None:
    """Its package is readable in the sandbox, and on the path of the adapter alone."""
    repo = make_repository(tmp_path / "repo")
    number = await submit_agent_job(make, str(repo), agent="acme", text="Do it")
    agents = Settings(agents={"acme": {"tone": "brief"}}).agents
    async with adapted_worker(rt, tmp_path / "data", agents):
        job = await ended(rt, number)
    assert lines_of(repo, number, "prompt.txt")[0].startswith("Be brief. ")
    assert (job.result or {})["summary"] == "1", "the program has the path of the adapter"


def test_the_keys_and_the_name_of_an_agent_are_those_of_its_package(package: None) -> None:
    agent = Settings(agents={"acme": {"env": {"A": "1"}}}).agents["acme"]
    assert agent.env == {"ACME_SAFE": "1", "A": "1"}
    assert agent.model_dump()["tone"] == "plain"
    assert profile({"agent_config": ["acme", "claude"]}).agent_config == ("acme", "claude")
    assert agent.repo_config_name == "acme"
    assert next(iter(demo_calls())) == "acme"
    assert agent.with_repo_config().env == {"A": "1"}
    for kind, keys, problem in (
        ("acme", {"tnoe": 1}, "tnoe\n.*not permitted"),
        ("json", {"tone": "x"}, "tone\n.*not permitted"),
        ("svn", {}, "no installed package has this kind of agent; known: json, .*acme.*claude"),
        ("opencode", {}, "is a program, not a kind; its kind is acp"),
    ):
        with pytest.raises(ValidationError, match=problem):
            AgentSettings.of({"kind": kind, "command": ["x"]} | keys)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import nothing_of_this_name", "cannot be loaded: ModuleNotFoundError"),
        ("AGENT = 1", "cannot be used: acme.agent:AGENT is no AgentPlugin"),
    ],
)
async def test_a_broken_agent_is_named_and_harms_no_other(
    rt: Runtime, make: Factory, tmp_path: Path, source: str, problem: str
) -> None:
    repo = make_repository(tmp_path / "repo")
    with installed(tmp_path / "packages", acme(source)):
        tables: dict[str, Any] = {"acme": {"tone": "x"}, "sh": {"command": ["sh"]}}
        settings = Settings(agents=tables)
        check = check_agent("acme", settings.agents["acme"], None)
        assert check.problem is not None
        assert check.problem.startswith(f"agent 'acme' of acme-agent 0.3 {problem}")
        assert check_agent("sh", settings.agents["sh"], None).problem is None
        [finding] = packages(settings)
        assert (finding.name, finding.text) == ("package acme-agent", check.problem)
        with pytest.raises(UsageError, match="allowed: claude, codex, opencode"):
            profile({"agent_config": ["acme"]})
        number = await submit_agent_job(make, str(repo), agent="acme")
        async with adapted_worker(rt, tmp_path / "data", settings.agents):
            job = await wait_for_status(rt, number, Status.RETRYING)
    assert check.problem in (job.last_error or "")


def test_the_agents_of_draftsman_name_what_exists() -> None:
    for plugin in plugins.installed(plugins.AGENTS):
        agent = plugins.load(plugin, AgentPlugin)
        assert agent.adapter is None or plugins.package_path(agent.adapter)
        if agent.table is not None:
            AgentSettings.of(agent.table)
