"""Real coding agents at a budget that is used up: stopped, asked, raised and finished."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.handlers import registry
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, wire
from draftsman.settings.agents import known_table
from draftsman.settings.llm import GatewaySettings, PriceSettings
from draftsman.settings.sandbox import SandboxSettings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.worker.agent_jobs import make_repository, submit_agent_job
from tests.core.worker.workers import running_worker, runtime_with
from tests.support.codex_recording import native_program
from tests.support.fake_model import FREE, FakeModel, fake_model
from tests.support.gemini_model import gemini_model

pytestmark = pytest.mark.timeout(400)
SECONDS: Final = 120.0
"""Deadline of each wait: the programs need seconds to start."""
CALL_TOKENS: Final = 1000
"""Input tokens of each call of the scripted model."""
BUDGET: Final = 500
"""Less than a call: the first passes it, the second is refused."""
MORE: Final = 3000
"""Tokens that are added: some agents call their model for other purposes, too."""
MAX_STOPS: Final = 10
OPENCODE: Final = {
    "model": "fake/fake-1",
    "small_model": "fake/fake-1",
    "provider": {
        "fake": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{gateway_url}/v1", "apiKey": "{gateway_token}"},
            "models": {"fake-1": {"name": "fake-1"}},
        }
    },
}
MORE_ARGS: Final = {"description": "add", "is_background": False}
AGENTS: Final[dict[str, dict[str, Any]]] = {
    "claude": {
        "provider": "anthropic",
        "options": (),
        "run": {"tool": "Bash", "args": {"command": "echo yes >> ran.txt", "description": "add"}},
    },
    "codex": {
        "provider": "openai",
        "options": ("app-server", "-c", 'model="fake-1"'),
        "run": {"tool": "exec_command", "args": {"cmd": "echo yes >> ran.txt"}},
    },
    "opencode": {
        "provider": "openai",
        "options": known_table("opencode")["command"][1:],
        "run": {"tool": "bash", "args": {"command": "echo yes >> ran.txt", "description": "add"}},
        "env": {
            "OPENCODE_CONFIG_CONTENT": json.dumps(OPENCODE),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        },
    },
    "goose": {
        "provider": "openai",
        "options": ("acp",),
        "run": {"tool": "shell", "args": {"command": "echo yes >> ran.txt"}},
        "env": {"GOOSE_MODEL": "fake-1"},
    },
    "qwen": {
        "provider": "openai",
        "options": known_table("qwen")["command"][1:],
        "run": {
            "tool": "run_shell_command",
            "args": {"command": "echo yes >> ran.txt"} | MORE_ARGS,
        },
        "env": {"OPENAI_MODEL": "fake-1"},
    },
    "gemini": {
        "provider": "google",
        "options": known_table("gemini")["command"][1:],
        "run": {
            "tool": "run_shell_command",
            "args": {"command": "echo yes >> ran.txt"} | MORE_ARGS,
        },
        "serve": gemini_model,
    },
}


def with_agent(
    rt: Runtime,
    data: Path,
    name: str,
    model: FakeModel,
    *,
    mode: str = "auto",
    ask_grace: float = 0,
    **entries: Any,
) -> Runtime:
    """Return services with this agent, whose gateway is the scripted model.

    `entries` are further keys of its table.
    """
    program = os.environ.get(name.upper()) or shutil.which(name)
    if program is None:
        pytest.skip(f"no {name} here: install it outside of /tmp, and set {name.upper()}")
    given = AGENTS[name]
    entry: dict[str, Any] = dict(known_table(name))
    entry["command"] = (native_program(program), *given["options"])
    entry["env"] = entry.get("env", {}) | given.get("env", {})
    entry |= {"gateway": "model", **entries}
    url = model.url.removesuffix("v1") if given["provider"] == "anthropic" else model.url
    gateway = {
        "provider": given["provider"],
        "base_url": url,
        "api_key": {"env": "KEY_OF_TEST"},
    }
    base = runtime_with(rt, data_dir=data, agents={name: entry}, ask_grace=ask_grace)
    gateways = {"model": GatewaySettings.model_validate(gateway)}
    prices = {"*": PriceSettings.model_validate(FREE)}
    sandbox = SandboxSettings.model_validate({"mode": mode})
    update = {"gateways": gateways, "prices": prices, "sandbox": sandbox}
    return wire(base.settings.model_copy(update=update), rt.db, False)


@pytest.mark.parametrize("name", AGENTS)
async def test_an_agent_stops_at_its_budget_and_finishes_after_it_was_raised(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "sk-test")
    repo = Repo.at(parse(str(make_repository(tmp_path / "repo", a="one\n"))))
    limits = profile({"budget": {"input_tokens": BUDGET}})
    added = await rt.repos.add(repo, limits, make.owner)
    number = await submit_agent_job(make, added.remote_url, agent=name)

    async def next_question(ordinal: int) -> str | None:
        """Return the text of an open question; None if the job is completed."""

        async def look() -> bool:
            job = await rt.read_model.job(number)
            assert job.last_error is None, job.last_error
            questions, _ = await rt.questions.of_job(number)
            return job.result is not None or len(questions) >= ordinal

        await until(look, f"D-{number}/{ordinal}", SECONDS)
        questions, _ = await rt.questions.of_job(number)
        return questions[-1].text if len(questions) >= ordinal else None

    budget = BUDGET
    stops = 0
    ordinal = 1
    serve = AGENTS[name].get("serve", fake_model)
    with serve([AGENTS[name]["run"], {"text": "all done"}]) as model:
        services = with_agent(rt, tmp_path / "data", name, model)
        async with running_worker(services, registry.load({}), leader=True, slots=1):
            while (text := await next_question(ordinal)) is not None:
                if used := re.search(r"has used ([\d,]+) of ([\d,]+) input tokens", text):
                    spent, limit = (int(part.replace(",", "")) for part in used.groups())
                    assert limit == budget <= spent < budget + CALL_TOKENS
                    budget = budget + MORE
                    stops = stops + 1
                    assert stops < MAX_STOPS, f"no progress: {text}"
                    await make.answer(number, str(MORE), n=ordinal)
                else:
                    await make.answer(number, "allow once", n=ordinal)
                ordinal += 1
    job = await rt.read_model.job(number)
    assert (job.result or {})["summary"] == "all done"
    assert stops > 0
    spent = sum(
        (run.usage or {}).get("input_tokens", 0) for run in await rt.read_model.runs(number)
    )
    assert spent < budget + CALL_TOKENS
