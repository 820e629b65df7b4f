"""`open`: web pages of a job."""

from __future__ import annotations

import webbrowser
from typing import Any

import pytest

from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.tui.cli.cli_runner import Cli

PULL = "https://git.example/acme/pay/pull/7"
CARD = "https://trello.com/c/abc"


async def test_the_pages_of_a_job_are_opened_or_printed(
    cli: Cli, rt: Runtime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = await make.running(url=CARD)
    opened: list[str] = []

    class Browser:
        def open(self, url: str) -> bool:
            opened.append(url)
            return True

    def no_browser(*_: Any) -> Any:
        raise webbrowser.Error("none")

    monkeypatch.setattr(webbrowser, "get", no_browser)
    assert (await cli("open", work.name)).out == f"{CARD}\n"
    await rt.checkpoints.pull_request(work.lease, PULL)
    assert (await cli("open", work.name)).out == f"{PULL}\n"
    assert (await cli("open", work.name, "ticket")).out == f"{CARD}\n"
    assert (await cli("open", work.name, "--print")).out == f"{PULL}\n{CARD}\n"
    monkeypatch.setattr(webbrowser, "get", Browser)
    done = await cli("open", work.name)
    assert (done.out, done.err, opened) == ("", f"opened {PULL}\n", [PULL])
    (await cli("open", work.name, "thread")).refused(1, "has no thread; it has: pull request")
    queued = await make.queued()
    (await cli("open", queued)).refused(1, "has no web page")
    (await cli("open", queued, "pr")).refused(1, "has no pull request")
