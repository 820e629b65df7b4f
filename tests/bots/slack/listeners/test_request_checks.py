"""Each way to submit a job refuses the same request, with data about the same field."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from draftsman import Client
from draftsman.errors import FieldError, NotPermitted, RejectedField
from draftsman.people.actor import Actor
from draftsman_bots.conversation.requests import JobRequest
from draftsman_bots.slack.requests import job_requests
from draftsman_tui.cli.app import App
from draftsman_tui.cli.main import cli
from draftsman_tui.dashboard.requests.actions import validate_request
from draftsman_tui.dashboard.requests.form import FormErrors
from tests.bots.slack.listeners.conftest import ANNA, SlackBotHarness

URL = "https://git.example/acme/pay"


@dataclass
class Ways:
    """Submission of an agent's request about a repository."""

    bench: SlackBotHarness
    config: Path

    async def client(self, repo: str) -> list[str]:
        return await _field_of(lambda: Client(self.bench.rt).submit("Tidy", repo=repo))

    async def chat(self, repo: str) -> list[str]:
        actor = self.bench.rt.policy.resolve(Actor("slack", ANNA, "Anna"))
        origin = job_requests.RequestOrigin("key", f"slack:{self.bench.general}")
        request = JobRequest("Tidy", "fix", {"repo": repo})
        return await _field_of(lambda: job_requests.submit(self.bench.ctx, actor, origin, request))

    async def command(self, repo: str) -> list[str]:
        words = ["--config", str(self.config), "submit", "--repo", repo, "Tidy"]
        return await _field_of(
            lambda: asyncio.to_thread(cli.main, words, standalone_mode=False, obj=App())
        )

    async def form(self, repo: str) -> list[str]:
        with pytest.raises(FormErrors) as caught:
            await validate_request({"text": "Tidy", "repo": repo}, self.bench.rt)
        return list(caught.value.problems)


async def _field_of(submit: Callable[[], Awaitable[object]]) -> list[str]:
    with pytest.raises(FieldError) as caught:
        await submit()
    assert "\n" not in str(caught.value)
    return [caught.value.field]


@pytest.fixture
def ways(
    bench: SlackBotHarness, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Ways:
    agents = bench.rt.settings.agents
    monkeypatch.setitem(agents, "careful", agents["tidy"])
    config = tmp_path / "draftsman.toml"
    config.write_text(f'database_url = "{database_url}"\nagents.careful.command = ["careful"]\n')
    return Ways(bench, config)


@pytest.mark.parametrize("way", ["client", "chat", "command", "form"])
@pytest.mark.parametrize(("repo", "field"), [(URL, "agent"), ("no/such", "repo")])
async def test_each_way_names_the_rejected_field(
    ways: Ways, way: str, repo: str, field: str
) -> None:
    assert await getattr(ways, way)(repo) == [field]
    assert await ways.bench.jobs() == []


async def test_a_rejected_field_has_the_known_names(ways: Ways) -> None:
    with pytest.raises(RejectedField) as caught:
        await Client(ways.bench.rt).submit("Tidy", repo="no/such")
    error = caught.value
    assert (error.field, error.rule, error.value) == ("repo", "unknown", "no/such")
    assert error.known is not None
    assert "--" not in str(error), "the options of the command line"
    with pytest.raises(NotPermitted):  # after the checks
        await Client(ways.bench.rt).submit(type="http_requst")
