"""The gateway of a run of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from draftsman.errors import Failure
from draftsman.handlers.gateway.access import GatewayAccess
from draftsman.handlers.gateway.api_formats import Provider
from draftsman.handlers.gateway.gateway import Gateway, ModelCall
from draftsman.handlers.gateway.http_server import serve
from draftsman.handlers.run_agent.agent_messages import UsageMessage
from draftsman.handlers.run_agent.agent_session import AgentSession
from draftsman.handlers.sandbox.sandbox_plan import RunSandbox
from draftsman.handlers.worker_run import WorkerRun
from draftsman.settings import AgentSettings


@asynccontextmanager
async def open_gateway(
    run: WorkerRun, agent: AgentSettings, sandbox: RunSandbox | None, session: AgentSession
) -> AsyncIterator[GatewayAccess | None]:
    """Serve the agent's gateway for the block; yield None without a gateway."""
    if agent.gateway is None or sandbox is None:
        yield None
        return
    settings = run.settings.gateways[agent.gateway]

    async def record(call: ModelCall) -> None:
        if call.cost_usd is None:
            run.log.write(f"[gateway] no price for the model {call.model}: set [prices]")
        usage, cost = call.usage, call.cost_usd or 0.0
        await session.record_call(
            UsageMessage(
                input_tokens=usage.input,
                output_tokens=usage.output,
                cost_usd=cost,
                model=call.model,
            )
        )

    gateway = Gateway(settings, run.settings.http, run.settings.prices, run.limits, record)
    private = sandbox.has_private_network(agent.network)

    def failed(text: str) -> None:
        run.log.write(f"[gateway] {text}")

    async with serve_gateway(gateway, settings.provider, private, failed) as access:
        yield access


@asynccontextmanager
async def serve_gateway(
    gateway: Gateway, provider: Provider, private_network: bool, on_failure: Callable[[str], None]
) -> AsyncIterator[GatewayAccess]:
    """Serve a gateway for the block; `on_failure` gets the reason if the sandbox opens no port."""
    with GatewayAccess(provider, gateway.token, private_network=private_network) as access:
        server = asyncio.create_task(_serve(access, gateway, on_failure))
        try:
            yield access
        finally:
            server.cancel()
            await asyncio.gather(server, return_exceptions=True)


async def _serve(
    access: GatewayAccess, gateway: Gateway, on_failure: Callable[[str], None]
) -> None:
    try:
        listener = await access.listener()
    except Failure as error:
        on_failure(str(error))
        return
    async with serve(listener, gateway.respond):
        await asyncio.Event().wait()
