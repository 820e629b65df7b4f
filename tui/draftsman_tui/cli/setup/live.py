"""`draftsman doctor --live`: what is assumed of a service, tried on the service itself."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import click

from draftsman.errors import DraftsmanError, UsageError
from draftsman.formats import times
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App
from draftsman_tui.cli.perform import confirm
from draftsman_tui.terminal.extras import advice, missing, of_channel
from draftsman_tui.terminal.output import check_lines

if TYPE_CHECKING:
    from draftsman.channels.plugin import ChannelPlugin
    from draftsman.deliveries.channels.live_run import LiveReport, LiveResult
    from draftsman.settings import Settings

SHOWN_WAIT: Final = 5.0
"""Seconds from which a wait is shown."""
STATUSES: Final = {"held": "ok", "did not hold": "fail", "could not be tried": "warn"}
"""Status of a check by its outcome."""
NAME_WIDTH: Final = 24


class LiveOptions(TypedDict):
    """The options of `--live`."""

    scratch: str | None
    quick: bool
    report: Path | None
    yes: bool


class TerminalPerson:
    """The person at the terminal, if there is one."""

    def __init__(self, app: App, *, yes: bool) -> None:
        self._app = app
        self._yes = yes

    def confirm(self, plan: str) -> None:
        """Ask whether the plan may be carried out; raises Refused, and UsageError without --yes."""
        confirm(self._app, plan, yes=self._yes, required=True)

    def asks(self, question: str) -> bool | None:
        """Return the answer to a question; None without a terminal, or if it is skipped."""
        if not self._app.out.interactive:
            return None
        try:
            answer = prompts.prompt(question, choices=("yes", "no", "skip"), default="skip")
        except click.Abort:
            raise KeyboardInterrupt from None
        return None if answer == "skip" else answer == "yes"

    async def wait(self, seconds: float) -> None:
        """Sleep, and show a long wait."""
        if seconds >= SHOWN_WAIT:
            self._app.out.info(f"waiting {times.span(seconds)} …")
        await asyncio.sleep(seconds)


async def check_live(
    app: App, service: str, *, scratch: str | None, quick: bool, report: Path | None, yes: bool
) -> None:
    """Try the assumptions about a service, and report the results.

    Raises DraftsmanError if any did not hold, was not tried, or something was not removed.
    """
    from draftsman import plugins
    from draftsman.deliveries.channels.live_check import LiveSession
    from draftsman.deliveries.channels.live_run import LiveRun, hide_secrets_of
    from draftsman.deliveries.channels.removals import Removals

    settings = app.settings
    channel = find_service(settings, service)
    if missing(extra := of_channel(channel.name)) is not None:
        raise DraftsmanError(advice(extra))
    if report is not None:
        _check_writable(report)
    hide_secrets_of(getattr(settings, channel.table, None))
    plugin = plugins.find(plugins.CHANNELS, channel.name)
    live = plugins.load_part(plugin, str(channel.live_checks))
    session = LiveSession(
        settings, service, scratch, TerminalPerson(app, yes=yes), Removals(), quick=quick
    )
    run = LiveRun(live, session)

    def show(result: LiveResult) -> None:
        if not app.json:
            status = STATUSES[result.outcome]
            hint = result.assumption if status == "fail" else None
            app.out.print(*check_lines(status, result.answer, hint, result.name, NAME_WIDTH))

    try:
        with _canceled_by_signals():
            await run.execute(show)
    finally:
        if run.began:
            _finish(app, run.report, report)
    if not run.report.ok or run.report.left:
        remains = "; not everything was removed" if run.report.left else ""
        raise DraftsmanError(f"{service}: {run.report.summary}{remains}")


def find_service(settings: Settings, service: str) -> ChannelPlugin:
    """Return the channel of a service that can be checked; raises UsageError."""
    from draftsman.channels import registry

    channels = [channel for channel in registry.channels() if channel.live_checks is not None]
    configured = {name: channel for channel in channels for name in channel.services(settings)}
    if (found := configured.get(service)) is not None:
        return found
    missing_tables = [
        f"[{channel.table}] ({channel.docs})"
        for channel in channels
        if not channel.services(settings)
    ]
    known = f"configured: {', '.join(configured) or 'none'}"
    others = f"; for others, add {' or '.join(missing_tables)}" if missing_tables else ""
    raise UsageError(f"--live {service!r} is no configured service; {known}{others}")


def _check_writable(path: Path) -> None:
    """Raise UsageError for a report that cannot be written, before anything is tried."""
    try:
        with path.open("a", encoding="utf-8"):
            return
    except OSError as error:
        raise UsageError(f"--report {path}: {error.strerror}; name a file in a folder") from None


def _finish(app: App, report: LiveReport, path: Path | None) -> None:
    """Write the report, and say what was not removed, also after an interruption."""
    if path is not None:
        path.write_text(report.markdown(), encoding="utf-8")
    if app.json:
        app.out.document(
            {"ok": report.ok and not report.left, "summary": report.summary, **vars_of(report)}
        )
        return
    for item in report.left:
        app.out.print(*check_lines("fail", f"not removed: {item}", "remove it by hand"))
    app.out.print(f"{report.service}: {report.summary}")
    if path is not None:
        app.out.info(f"report: {path}")


def vars_of(report: LiveReport) -> dict[str, object]:
    """Return the fields of a report."""
    return {name: getattr(report, name) for name in type(report).__dataclass_fields__}


@contextlib.contextmanager
def _canceled_by_signals() -> Iterator[None]:
    """Let shutdown signals cancel the task, as Ctrl-C does, so that it removes what it created."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGTERM, signal.SIGHUP) if is_main else ()
    for number in signals:
        loop.add_signal_handler(number, lambda: task and task.cancel())
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
