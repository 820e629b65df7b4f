"""The `dashboard --web` command: an independent dashboard for each tab."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest
from aiohttp import ClientSession, WSServerHandshakeError

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_tui.dashboard.web import server as browser_tab
from draftsman_tui.dashboard.web.server import Web
from tests.tui.cli.browser_tabs import dashboards, origin_of, served, socket_of, tab
from tests.tui.cli.cli_runner import COMMAND, DEADLINE, Cli, until


@asynccontextmanager
async def started(cli: Cli, *options: str) -> AsyncIterator[tuple[Process, str]]:
    """Run the command itself; gives its address."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--config", str(cli.config), "dashboard", "--web", "--port", "0", *options,
        stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), DEADLINE)
        yield process, line.decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_key_in_a_tab_cancels_a_job_and_the_end_of_the_tab_ends_its_dashboard(
    cli: Cli, make: Factory, rt: Runtime
) -> None:
    number = await make.queued()
    async with served(cli.config) as address:
        async with tab(address) as page:
            await page.see(f"D-{number}", "queued")
            await page.type("c")
            await page.see(f"Cancel D-{number}?")
            await page.type("y")
            await page.see(f"D-{number} canceled", "u: undo")
            (process,) = dashboards()
        await asyncio.to_thread(process.wait, DEADLINE)
    assert (await rt.read_model.job(number)).status is Status.CANCELED  # a pending cancel counts


@pytest.mark.slow(
    fast="test_a_key_in_a_tab_cancels_a_job_and_the_end_of_the_tab_ends_its_dashboard"
)
async def test_a_killed_dashboard_closes_its_tab_and_a_hanging_dashboard_is_killed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_tab, "STOP_TIMEOUT", 0.5)
    async with served(cli.config) as address:
        async with tab(address) as page:
            await page.see("No jobs yet")
            dashboards()[0].kill()
            await page.see("dashboard exited with status -9")
            await page.ended()
        async with tab(address) as page:
            await page.see("No jobs yet")
            (process,) = dashboards()
            process.suspend()
    assert not process.is_running()


async def test_a_dashboard_that_cannot_start_shows_the_reason_in_its_tab(cli: Cli) -> None:
    async with served(cli.config, "--view", "nonsense") as address, tab(address) as page:
        await page.see("unknown table or saved view 'nonsense'")
        await page.ended()


async def test_requests_from_other_origins_are_refused() -> None:
    async with Web(["false"], 0).serving() as address, ClientSession() as session:
        origin = origin_of(address)
        port = origin.rsplit(":", 1)[1]

        async def status(url: str, **headers: str) -> int:
            async with session.get(url, headers=headers) as response:
                assert "draftsman" in await response.text()
                return response.status

        assert await status(address) == 200
        assert await status(address, Host=f"localhost:{port}") == 200
        assert await status(address, Host=f"rebound.example:{port}") == 403
        assert await status(address, Host="") == 403
        assert await status(address, Origin="http://elsewhere.example") == 403
        assert await status(f"{origin}/") == 404
        assert await status(f"{origin}/guessed/ws") == 404

        for headers in (
            {},
            {"Origin": "null"},
            {"Origin": "http://elsewhere.example"},
            {"Origin": f"http://localhost:{port}"},
            {"Origin": f"http://rebound.example:{port}", "Host": f"rebound.example:{port}"},
        ):
            with pytest.raises(WSServerHandshakeError, match="403"):
                await session.ws_connect(socket_of(address), headers=headers)
        with pytest.raises(WSServerHandshakeError, match="404"):
            await session.ws_connect(f"{origin}/guessed/ws", origin=origin)


async def test_the_page_loads_no_external_resources() -> None:
    async with Web(["false"], 0).serving() as address, ClientSession() as session:
        async with session.get(address) as response:
            text = await response.text()
            assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        addresses = [part.split('"')[0] for part in text.replace('src="', 'href="').split('href="')]
        files = [url for url in addresses[1:] if url and not url.startswith("data:")]
        assert "https:" not in text
        for file in (*files, "static/fonts/RobotoMono-Italic-VariableFont_wght.ttf"):
            async with session.get(address + file) as response:
                assert response.status == 200, file


async def test_the_url_for_the_browser_works_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    web = Web(["false"], 0)
    async with web.serving() as address, ClientSession() as session:
        web.open_browser()
        assert address.rsplit("/", 2)[1] not in opened[0]
        async with session.get(opened[0]) as response:
            assert (response.status, str(response.url)) == (200, address)
        async with session.get(opened[0]) as response:
            assert response.status == 404


@pytest.mark.slow(fast="test_no_dashboard_outlives_a_server_that_is_killed")
async def test_options_are_passed_to_the_dashboard_and_ctrl_c_ends_every_tab(cli: Cli) -> None:
    async with (
        started(cli, "--read-only", "--view", "workers") as (process, address),
        tab(address) as page,
    ):
        await page.see("workers · 0 · read-only")
        family = dashboards(process.pid)
        assert len(family) == 1
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), DEADLINE) == 0
        assert not psutil.wait_procs(family, timeout=0)[1]


async def test_no_dashboard_outlives_a_server_that_is_killed(cli: Cli) -> None:
    async with started(cli) as (process, address), tab(address) as page:
        await page.see("No jobs yet")
        (child,) = dashboards(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not child.is_running(), "the end of the dashboard")


async def test_an_invalid_port_or_address_is_refused_in_one_line(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        output = await cli("dashboard", "--web", "--port", port)
        output.refused(2, f"port {port} is in use", "--port")
    (await cli("dashboard", "--port", "1")).refused(2, "--port requires --web")
    (await cli("dashboard", "--open")).refused(2, "--open requires --web")
