"""The gateway of a run of an agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

from draftsman.agent_runs.mcp.http_transport import McpEndpoint
from draftsman.agent_runs.mcp.protocol import ToolError
from draftsman.agent_runs.mcp.run_tools import INSTRUCTIONS, JobTools, RunTools
from draftsman.agent_runs.protocol.agent_messages import UsageMessage
from draftsman.agent_runs.session.agent_session import AgentSession
from draftsman.agent_runs.session.run_socket import Respond
from draftsman.costs.budgets import UNPRICED, CallEstimate, failure_of, refusal_of
from draftsman.errors import Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.sandbox.gateway.gateway import Gateway, ModelCall
from draftsman.sandbox.gateway.http_server import GatewayReply, GatewayRequest, serve
from draftsman.sandbox.gateway_access import MCP_PATH, GatewayAccess, Provider
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.settings.agents import AgentSettings

MAX_REFUSED: Final = 20
"""Requests of a run that are not allowed and stand in its log."""


@asynccontextmanager
async def open_gateway(
    run: WorkerRun,
    agent: AgentSettings,
    sandbox: RunSandbox | None,
    session: AgentSession,
    *,
    repo: str,
    respond: Respond,
) -> AsyncIterator[GatewayAccess | None]:
    """Serve the agent's gateway and MCP server for the block; yield None without a gateway.

    `respond` answers messages of programs, as on the socket of the run.
    """
    if agent.gateway is None or sandbox is None:
        yield None
        return
    settings = run.settings.gateways[agent.gateway]
    ledger = _Ledger(run, session)
    gateway = Gateway(settings, run.settings.http, run.settings.prices, run.limits, ledger)
    private = sandbox.has_private_network(agent.network)

    def failed(text: str) -> None:
        run.log.write(f"[gateway] {text}")

    async def ask(kind: str, /, **fields: Any) -> dict[str, Any]:
        message = json.dumps({"type": kind, "id": "1"} | fields).encode()
        reply: dict[str, Any] = json.loads(await respond(message))
        if reply["type"] == "refused":
            raise ToolError(str(reply.get("reason")))
        return reply

    jobs = JobTools(run, repo, may_submit=agent.submit_jobs)
    tools = [*RunTools(ask).tools(), *jobs.tools()]
    mcp = McpEndpoint(gateway.token, tools, INSTRUCTIONS)
    async with serve_gateway(gateway, settings.provider, private, failed, mcp) as access:
        yield access


@asynccontextmanager
async def serve_gateway(
    gateway: Gateway,
    provider: Provider,
    private_network: bool,
    on_failure: Callable[[str], None],
    mcp: McpEndpoint | None = None,
) -> AsyncIterator[GatewayAccess]:
    """Serve a gateway, and an MCP server on its port, for the block.

    `on_failure` gets the reason if the sandbox opens no port.
    """
    with GatewayAccess(provider, gateway.token, private_network=private_network) as access:
        server = asyncio.create_task(_serve(access, gateway, on_failure, mcp))
        try:
            yield access
        finally:
            server.cancel()
            await asyncio.gather(server, return_exceptions=True)
            await gateway.close()


class _Ledger:
    """Reserves and records the calls of a run; a call over a budget stops its agent.

    The agent is parked before it gets the refusal, so that it saves its work instead of failing.
    """

    def __init__(self, run: WorkerRun, session: AgentSession) -> None:
        self._run = run
        self._session = session
        self.release = session.meter.release
        self._refused: set[str] = set()

    async def refuse(self, reason: str) -> None:
        """Write why a request is not allowed to the job's log, once and for few requests."""
        if reason not in self._refused and len(self._refused) < MAX_REFUSED:
            self._refused.add(reason)
            self._run.log.write(f"[gateway] {reason}")

    async def reserve(self, call: UUID, estimate: CallEstimate) -> str | None:
        """Reserve the maximum use of a call; return why it is refused."""
        session = self._session
        await session.started.wait()
        if not await session.grace.may_write() or session.is_ending:
            return "the run is ending"
        is_priced = estimate.cost_usd is not None
        state = await session.meter.reserve(call, estimate) if is_priced else UNPRICED
        if state.outcome == "reserved":
            return None
        refusal = refusal_of(state, estimate, self._run.job.name)
        self._run.log.write(f"[gateway] {refusal}")
        if (failure := failure_of(state, estimate)) is not None:
            session.stop(failure)
        else:
            await session.stop_for_budget(state)
        return refusal

    async def record(self, call: ModelCall) -> None:
        """Record a call, also if the run has parked."""
        await self._session.grace.may_write()
        usage = UsageMessage(
            input_tokens=call.usage.input,
            output_tokens=call.usage.output,
            cost_usd=call.cost_usd,
            model=call.model,
        )
        await self._session.meter.add(usage, call.id)


async def _serve(
    access: GatewayAccess,
    gateway: Gateway,
    on_failure: Callable[[str], None],
    mcp: McpEndpoint | None,
) -> None:
    async def respond(request: GatewayRequest, reply: GatewayReply) -> None:
        if mcp is not None and request.path == MCP_PATH:
            await mcp.respond(request, reply)
        else:
            await gateway.respond(request, reply)

    try:
        listener = await access.port.listener()
    except Failure as error:
        on_failure(str(error))
        return
    async with serve(listener, respond):
        await asyncio.Event().wait()
