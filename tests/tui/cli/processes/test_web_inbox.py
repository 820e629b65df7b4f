"""The commands `web`, `link --web`, `people sessions` and `people sign-out`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until, wait_blocked
from tests.bots.web.web_side import Visitor
from tests.tui.cli.cli_runner import COMMAND, DEADLINE, Cli


@asynccontextmanager
async def serving(
    cli: Cli, listen: str = "127.0.0.1:0", *options: str
) -> AsyncIterator[tuple[Process, str]]:
    """Run the command; provide the first line of its output: its URL."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "--config", str(cli.config), "web", "--listen", listen, *options,
        stdout=PIPE, stderr=PIPE, env={**os.environ, "DRAFTSMAN_QUESTIONS__UNDO": "0"},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), DEADLINE)
        yield process, line.decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def browser_at(url: str) -> Visitor:
    """Return a browser for the server at a URL."""
    return Visitor(int(url.rpartition(":")[2]), url)


async def test_a_link_of_the_command_line_signs_in(cli: Cli, make: Factory, rt: Runtime) -> None:
    work = await make.asked()
    async with serving(cli) as (process, url):
        browser = browser_at(url)
        printed = await cli("link", "--web")
        assert (printed.code, printed.out.count("\n")) == (0, 1)
        assert printed.out.startswith(f"{url}/sign-in/"), "of the running inbox"
        assert "once, until" in printed.err
        coded = (await cli("link", "--web", "--qr")).out.splitlines()
        assert len(coded) >= 20
        assert len({len(row) for row in coded[1:]}) == 1
        assert {*"".join(coded[1:])} == {*" ▀▄█"}
        link = (await cli("link", "--web", "--json")).json
        path = link["url"].removeprefix(url)
        assert (await browser.post(path, {})).status_code == 303
        assert link["person"] in (await browser.get("/")).text
        assert (await browser.answer(f"/questions/{work.name}/1", choice="red")).status_code == 303
        [session] = (await cli("people", "sessions", "--json")).json["sessions"]
        assert (session["person"], session["method"]) == (link["person"], "link")
        assert "test browser" in (await cli("people", "sessions")).out
        ended = await cli("people", "sign-out", session["id"])
        assert ended.out == "1 session ended\n"
        assert (await browser.get("/")).status_code == 303
        (await cli("people", "sign-out", session["id"])).refused(3, "there is no session")
        assert (await cli("people", "sign-out", "--person", "ben")).out == "0 sessions ended\n"
        (await cli("people", "sign-out", "--person", "nobody")).refused(
            2, "unknown person 'nobody'"
        )
        await browser.http.aclose()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), DEADLINE) == 0
    stopped = (await cli("link", "--web")).out
    assert stopped.startswith("http://127.0.0.1:8421/sign-in/"), "as configured"
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED


async def test_the_url_is_printed_as_json(cli: Cli) -> None:
    async with serving(cli, "127.0.0.1:0", "--json") as (process, first):
        assert process.stdout is not None
        lines = [first]
        while lines[-1] != "}":
            line = await asyncio.wait_for(process.stdout.readline(), DEADLINE)
            lines.append(line.decode().rstrip("\n"))
        url = json.loads("\n".join(lines))["url"]
        browser = browser_at(url)
        assert (await browser.get("/")).status_code == 303
        await browser.http.aclose()


async def test_bad_options_get_one_line(cli: Cli) -> None:
    (await cli("link")).refused(2, "use --web")
    (await cli("link", "CODE", "--qr")).refused(2, "--qr requires --web")
    (await cli("link", "--web", "CODE")).refused(2, "use --web")
    (await cli("people", "sign-out")).refused(2, "--person")
    (await cli("web", "--listen", "here")).refused(2, "host:port")
    (await cli("web", "--url", "http://example.org")).refused(2, "https://")
    (await cli("web", "--listen", "0.0.0.0:0")).refused(2, "needs url")


async def test_a_killed_server_loses_no_answer_and_counts_none_twice(
    cli: Cli, make: Factory, rt: Runtime, conn: Connection
) -> None:
    work = await make.asked()
    path = f"/questions/{work.name}/1"
    async with serving(cli) as (process, url):
        browser = browser_at(url)
        link = (await cli("link", "--web", "--json")).json["url"]
        await browser.post(link.removeprefix(url), {})
        form = {**await browser.hidden(path), "choice": "blue"}
        lock = "SELECT FROM draftsman.job_states WHERE number = %s FOR UPDATE"
        async with conn.transaction():
            await conn.execute(lock, (work.number,))
            sent = asyncio.create_task(browser.post(path, form))
            async with rt.db.connection() as watch:
                await wait_blocked(watch, by=conn.info.backend_pid)
            process.kill()
            [result] = await asyncio.gather(sent, return_exceptions=True)
            assert isinstance(result, httpx.HTTPError)
        await process.wait()
    killed = (await cli("link", "--web")).out
    assert killed.startswith("http://127.0.0.1:8421/sign-in/"), "as configured"
    # the server ends the transaction of the killed process, committed or not

    async def is_free() -> bool:
        async with conn.transaction():
            cursor = await conn.execute(f"{lock} SKIP LOCKED".encode(), (work.number,))
            return cursor.rowcount == 1

    await until(is_free, "the end of the killed transaction")
    async with serving(cli, url.removeprefix("http://")) as (_, again):
        assert again == url
        assert (await browser.post(path, form)).status_code == 303
        assert (await browser.post(path, form)).status_code == 303
        await browser.http.aclose()
    _, answers = await rt.questions.of_job(work.number)
    assert [answer.payload for answer in answers] == [{"value": "blue"}]
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED
