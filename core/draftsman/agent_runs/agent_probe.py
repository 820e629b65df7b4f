"""A probe of an agent: a prompt in an empty repository, with its sandbox and its gateway.

It needs no database and stores nothing; the call of the model costs as much as any other.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import UUID

from draftsman.agent_runs.agent_choice import AGENT_SETTING
from draftsman.agent_runs.clones.git import git, init
from draftsman.agent_runs.protocol.agent_messages import (
    ApproveMessage,
    AskMessage,
    CheckpointMessage,
    ErrorMessage,
    FromAgent,
    ResultMessage,
)
from draftsman.agent_runs.protocol.codec import encode, parse_line
from draftsman.agent_runs.protocol.protocol import (
    AckMessage,
    ParkMessage,
    RequestBody,
    StartMessage,
    ToAgent,
)
from draftsman.agent_runs.session.agent_gateway import serve_gateway
from draftsman.costs.budgets import UNPRICED, CallEstimate, refusal_of
from draftsman.errors import Failure
from draftsman.jobs.retries import BUILT_IN
from draftsman.sandbox.gateway.gateway import Gateway, ModelCall
from draftsman.sandbox.gateway_access import GatewayAccess
from draftsman.sandbox.mode_detection import probe_folder
from draftsman.sandbox.network_proxy.access import open_network_proxy
from draftsman.sandbox.processes.process import AgentProcess, MalformedLine
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.settings import Settings
from draftsman.settings.agents import AgentSettings

PROMPT: Final = "Reply with the word ready. Use no tools and change no files."
TIMEOUT: Final = 120.0
"""Seconds for the agent to reply."""
MAX_TEXT: Final = 500
NO_TREE: Final = "0" * 40
"""Tree of a checkpoint, which is not stored."""


@dataclass(slots=True)
class AgentProbe:
    """The result of a probe; `text` is the reply of the agent, or the reason of its failure."""

    succeeded: bool = False
    text: str = ""
    seconds: float = 0.0
    calls: list[ModelCall] = field(default_factory=list)
    """Calls through the gateway."""

    @property
    def tokens(self) -> int:
        """Tokens that the gateway counted."""
        return sum(call.usage.input + call.usage.output for call in self.calls)

    def fail(self, text: str) -> None:
        """Set the reason of the failure."""
        self.succeeded = False
        self.text = text[:MAX_TEXT]


async def probe_agent(settings: Settings, name: str, timeout: float = TIMEOUT) -> AgentProbe:
    """Start an agent with a prompt, and return its reply or the reason of its failure."""
    probe = AgentProbe()
    started = time.monotonic()
    try:
        with probe_folder() as folder:
            repo = folder / "repo"
            home = folder / "home"
            repo.mkdir()
            (repo / "README.md").write_text("An empty repository for a probe.\n")
            await init(repo)
            await git("add", "-A", cwd=repo)
            await git("commit", "-q", "-m", "probe", cwd=repo)
            sandbox = await open_run_sandbox(settings.sandbox, repo=repo, home=home)
            try:
                async with asyncio.timeout(timeout):
                    await _run(settings, settings.agents[name], sandbox, repo, probe)
            finally:
                sandbox.close()
    except TimeoutError:
        probe.fail(f"no reply within {timeout:g} s")
    except Failure as error:
        probe.fail(str(error))
    probe.seconds = time.monotonic() - started
    return probe


class _Calls:
    """The calls of a probe, which count for no budget."""

    def __init__(self, probe: AgentProbe) -> None:
        self._probe = probe

    async def refuse(self, reason: str) -> None:
        """Fail: the agent would fail in a job, too."""
        self._probe.fail(reason)

    async def reserve(self, call: UUID, estimate: CallEstimate) -> str | None:
        """Allow each call of a model that has a price."""
        return None if estimate.cost_usd is not None else refusal_of(UNPRICED, estimate, "")

    async def record(self, call: ModelCall) -> None:
        """Keep a call."""
        self._probe.calls.append(call)

    async def release(self, call: UUID) -> None:
        """Do nothing: nothing was reserved."""


async def _run(
    settings: Settings, agent: AgentSettings, sandbox: RunSandbox, repo: Path, probe: AgentProbe
) -> None:
    agent = agent.model_copy(update={"network": settings.resolve_network(agent.network)})
    if agent.gateway is None:
        await _talk(settings, agent, sandbox, repo, probe, None)
        return
    limits = BUILT_IN["run_agent"].nested()
    provider = settings.gateways[agent.gateway]
    gateway = Gateway(provider, settings.http, settings.prices, limits, _Calls(probe))
    private = sandbox.has_private_network(agent.network)
    async with serve_gateway(gateway, provider.provider, private, probe.fail) as access:
        await _talk(settings, agent, sandbox, repo, probe, access)


async def _talk(
    settings: Settings,
    agent: AgentSettings,
    sandbox: RunSandbox,
    repo: Path,
    probe: AgentProbe,
    access: GatewayAccess | None,
) -> None:
    """Start the agent, and read its messages until its end."""
    errors = bytearray()

    async def on_stderr(chunk: bytes) -> None:
        errors.extend(chunk)
        del errors[:-MAX_TEXT]

    start = StartMessage(
        job="D-0",
        run=1,
        repo=str(repo),
        workspace=sandbox.sandbox_path(repo.resolve()),
        branch="draftsman/D-0",
        base_sha=(await git("rev-parse", "HEAD", cwd=repo)).decode().strip(),
        mode="investigate",
        request=RequestBody(title=PROMPT),
    )
    refusals: list[str] = []
    async with (
        open_network_proxy(
            http=settings.http,
            network=agent.network,
            sandbox=sandbox,
            limits=BUILT_IN["run_agent"].nested(),
            setting=AGENT_SETTING,
            log=refusals.append,
        ) as proxy,
        await AgentProcess.start(
            agent,
            cwd=repo,
            home=sandbox.home,
            lease=settings.worker.stop_after,
            on_stderr=on_stderr,
            sandbox=sandbox,
            gateway=access,
            proxy=proxy,
        ) as process,
    ):
        process.post(encode(start))
        async for line in process.lines():
            message = parse_line(line)
            if not isinstance(message, MalformedLine):
                reply = _reply(message, probe)
                if reply is not None:
                    process.post(encode(reply))
        code = await process.wait()
    if not probe.succeeded and not probe.text:
        detail = errors.decode(errors="replace").strip().rpartition("\n")[2]
        detail = "; ".join([*refusals[:1], detail])
        probe.fail(f"exited with code {code} without a result: {detail}".rstrip(": "))


def _reply(message: FromAgent, probe: AgentProbe) -> ToAgent | None:
    """Take a message; return the reply to it."""
    if isinstance(message, ResultMessage):
        probe.succeeded = True
        probe.text = message.summary.strip()[:MAX_TEXT]
    elif isinstance(message, ErrorMessage):
        probe.fail(message.message)
    elif isinstance(message, AskMessage | ApproveMessage):
        probe.fail(f"it asks a question instead of a reply: {message.text}")
        return ParkMessage(id=message.id)
    tree = NO_TREE if isinstance(message, CheckpointMessage) else None
    return AckMessage(id=message.id, tree=tree) if message.id else None
