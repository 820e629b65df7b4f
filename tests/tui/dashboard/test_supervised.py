"""Log of the supervised processes: events are detected by data, not by wording."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from draftsman.log import LogEvent, keys, setup
from draftsman.settings.log import LogSettings
from draftsman_tui.dashboard.worker.supervised import SUPERVISOR, SupervisedProcesses


@pytest.fixture(params=["text", "json"])
def written(request: pytest.FixtureRequest) -> io.StringIO:
    stream = io.StringIO()
    setup(LogSettings(format=request.param), stream)
    return stream


@pytest.mark.parametrize("event", list(LogEvent))
def test_start_and_stop_of_workers_and_leaders_are_detected_by_event(
    written: io.StringIO, event: LogEvent
) -> None:
    logging.getLogger("draftsman.worker").info("zyx %s", 3, extra=keys(event=event, job="D-1"))
    assert SupervisedProcesses(1, Path()).read_log(written.getvalue().splitlines())


def test_other_log_lines_are_ignored(written: io.StringIO) -> None:
    log = logging.getLogger("draftsman.worker")
    log.info("worker w1 is busy, and leading")
    log.info("a line", extra=keys(count=3))
    assert not SupervisedProcesses(1, Path()).read_log(written.getvalue().splitlines())


def test_warning_of_the_supervisor_is_recorded(written: io.StringIO) -> None:
    logging.getLogger(SUPERVISOR).warning("the worker ended with 9")
    started = SupervisedProcesses(1, Path())
    assert not started.read_log(written.getvalue().splitlines())
    assert started.last_error == "the worker ended with 9"
