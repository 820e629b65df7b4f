"""The `metrics` command: once on the terminal, and as an exporter."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from draftsman_testing.factories import Factory
from tests.support.visibility import SECRET, hide
from tests.tui.cli.cli_runner import COMMAND, DEADLINE, Cli


async def test_metrics_are_printed_in_the_format_of_prometheus(cli: Cli, make: Factory) -> None:
    await make.queued(queue="work")
    printed = await cli("metrics", "--once")
    assert printed.code == 0, printed.err
    families = {family.name: family for family in text_string_to_metric_families(printed.out)}
    labels = [sample.labels for sample in families["draftsman_jobs"].samples]
    assert labels == [{"queue": "work", "type": "noop", "status": "queued"}]
    assert families["draftsman_jobs"].documentation.endswith(" Read from the database.")
    assert "draftsman_attention_questions" in families


async def test_metrics_count_jobs_that_the_user_may_not_see(
    cli: Cli, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = await make.queued(queue="work", repo=SECRET)
    hide(monkeypatch, "root")
    assert f"D-{number}" not in (await cli("jobs")).out
    assert 'queue="work"' in (await cli("metrics", "--once")).out


async def test_wrong_options_are_refused(cli: Cli) -> None:
    (await cli("metrics", "--once", "--json")).refused(2, "leave out --json")
    (await cli("metrics", "--listen", "nowhere")).refused(2, "'nowhere' is no address", "host:port")


async def test_an_exporter_serves_metrics_until_a_signal(cli: Cli, make: Factory) -> None:
    await make.queued(queue="work")
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--config", str(cli.config), "metrics", "--listen", "127.0.0.1:0",
        stdout=PIPE, env=dict(os.environ),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), DEADLINE)
        url = line.decode().strip()
        assert url.startswith("http://127.0.0.1:"), url
        async with httpx.AsyncClient() as client:
            metrics = await client.get(url)
            ready = await client.get(url.replace("/metrics", "/readyz"))
        expected = 'draftsman_jobs{queue="work",type="noop",status="queued"} 1\n'
        assert (metrics.status_code, expected in metrics.text) == (200, True)
        assert ready.json() == {"ready": True, "problems": {}}
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), DEADLINE) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
