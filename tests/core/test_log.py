"""The log: a line for each record, keys in order, no secret, and no error of its own."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import stat
import subprocess
import sys
import time
from contextvars import copy_context
from pathlib import Path
from typing import Any, Literal

import pytest

from draftsman.formats.secret_formats import HIDDEN
from draftsman.log import RUN, WORKER, LogEvent, LogLine, keys, parse_line, redact, setup
from draftsman.settings.log import LogSettings
from tests.support.cases import cases

LOG = logging.getLogger("draftsman.test")
FORMATS: tuple[Literal["text", "json"], ...] = ("text", "json")


class Terminal(io.StringIO):
    """A stream that reports to be a terminal."""

    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    """A stream whose reader is closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def _colour_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def _screen(
    level: Literal["debug", "info", "warning", "error"] = "info",
    file: Path | None = None,
    form: Literal["text", "json"] = "text",
) -> io.StringIO:
    stream = io.StringIO()
    setup(LogSettings(level=level, file=file, format=form), stream)
    return stream


def test_a_record_is_one_line_with_time_level_logger_and_message() -> None:
    stream = _screen()
    LOG.info("claimed %d jobs", 3)
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info draftsman\.test claimed 3 jobs\n"
    assert re.fullmatch(pattern, stream.getvalue())


def test_known_keys_come_in_their_order_without_unset_keys() -> None:
    stream = _screen()
    LOG.info("claimed", extra=keys(worker="w1", queue=None, job="D-142", run=2))
    assert stream.getvalue().endswith(" claimed job=D-142 run=2 worker=w1\n")


def test_a_value_that_would_look_like_another_key_is_quoted() -> None:
    stream = _screen()
    LOG.info("asked", extra=keys(job="D-1", actor="a b=c", type=""))
    assert stream.getvalue().endswith(' asked job=D-1 type="" actor="a b=c"\n')


def test_other_keys_come_last() -> None:
    stream = _screen()
    LOG.info("sent", extra={"zebra": 1, "job": "D-1", "apple": 2})
    assert stream.getvalue().endswith(" sent job=D-1 apple=2 zebra=1\n")


@cases("text", ["a\nb", "a\r\nb", "a\x1b[31mb", "a\u2028b", "a\u202eb", "a\x00b"])
def test_no_text_breaks_the_line_or_controls_the_terminal(text: str) -> None:
    stream = _screen()
    LOG.info(text, extra=keys(actor=text))
    assert len(stream.getvalue().splitlines()) == 1
    assert stream.getvalue().rstrip("\n").isprintable()


def test_an_exception_is_one_line_at_info() -> None:
    stream = _screen("info")
    _log_an_exception()
    assert stream.getvalue().endswith(' run failed error="ValueError: first\\\\nsecond"\n')
    assert "Traceback" not in stream.getvalue()


def test_an_exception_has_its_traceback_at_debug() -> None:
    stream = _screen("debug")
    _log_an_exception()
    first, *trace = stream.getvalue().splitlines()
    assert 'error="ValueError: first' in first
    assert "Traceback" in trace[0]
    assert any("_log_an_exception" in line for line in trace)


def _log_an_exception() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        LOG.exception("run failed")


def test_an_invalid_format_string_loses_no_record() -> None:
    stream = _screen()
    broken = logging.makeLogRecord({"name": "draftsman", "msg": "%d jobs", "args": ("many",)})
    logging.getLogger().handlers[-1].handle(broken)
    assert "%d jobs ('many',)" in stream.getvalue()


@cases(
    ("level", "levels"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_records_below_the_level_are_not_written(
    level: Literal["debug", "info", "error"], levels: list[str]
) -> None:
    stream = _screen(level)
    for each in ("debug", "info", "warning", "error"):
        getattr(LOG, each)("said")
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == levels


def test_libraries_log_from_warning_on() -> None:
    stream = _screen("debug")
    logging.getLogger("some.library").info("chatter")
    logging.getLogger("some.library").warning("trouble")
    assert "chatter" not in stream.getvalue()
    assert "trouble" in stream.getvalue()


def test_a_second_setup_replaces_the_first() -> None:
    first = _screen()
    second = _screen()
    LOG.info("said")
    assert first.getvalue() == ""
    assert second.getvalue().count("said") == 1


def test_a_terminal_gets_colour() -> None:
    stream = Terminal()
    setup(LogSettings(), stream)
    LOG.warning("careful")
    assert "\x1b[33mwarning\x1b[0m" in stream.getvalue()


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_gets_no_colour_with_no_color(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    stream = Terminal()
    setup(LogSettings(), stream)
    LOG.warning("careful")
    assert "\x1b" not in stream.getvalue()


SECRET = "s3cr3t" * 6
"""A placeholder for a secret, long enough for every format."""


@cases(
    "text",
    [
        f"postgresql://anna:{SECRET}@db.example.org/draftsman",
        f"postgresql://:{SECRET}@db/draftsman",
        f"postgres://anna:p@ss/{SECRET}@db:5432/draftsman",
        f"host=db password={SECRET} user=anna",
        f"host=db password = '{SECRET} with spaces'",
        f"postgresql://db/draftsman?user=anna&password={SECRET}&sslmode=require",
        f"https://x-access-token:{SECRET}@git.example.org/a/b.git",
        f"https://api.example.org/1/cards?key={SECRET}&token={SECRET}",
        f"https://api.example.org/1/tokens/{SECRET}/webhooks/",
        f"Authorization: Bearer {SECRET}",
        f"'authorization': 'Basic {SECRET}'",
        f'Authorization: OAuth oauth_consumer_key="{SECRET}", oauth_token="{SECRET}"',
        f"used bearer {SECRET} for it",
        f'{{"access_token": "{SECRET}", "ok": true}}',
        f"{{'client_secret': '{SECRET}'}}",
        f"xoxb-{SECRET}",
        f"xoxp-{SECRET}",
        f"xoxe.xoxp-{SECRET}",
        f"xapp-1-{SECRET}",
        f"sk-{SECRET}",
        f"sk-proj-{SECRET}",
        f"ATTA{SECRET}",
        f"ATATT{SECRET}",
        f"ghp_{SECRET}",
        f"github_pat_{SECRET}",
        f"glpat-{SECRET}",
        f"https://hooks.slack.com/services/T0/B0/{SECRET}",
    ],
)
def test_no_secret_is_written(text: str) -> None:
    for form in FORMATS:
        stream = _screen("debug", form=form)
        LOG.info(text)
        LOG.info("said %s", text)
        LOG.info("said", extra=keys(actor=text))
        try:
            raise RuntimeError(text)
        except RuntimeError:
            LOG.exception("failed")
        assert "s3cr3t" not in stream.getvalue(), form
        assert HIDDEN in stream.getvalue(), form


@cases(
    "text",
    [
        "claimed D-142 for worker w1 in 3 ms",
        "see https://example.org:8080/a/b?c=d#e",
        "postgresql://draftsman@db.example.org:5432/draftsman",
        "postgresql:///draftsman?host=/run/draftsman",
        "unexpected token: ]",
        "wrote basic tests for the risk-based task-force",
        "mail anna@example.org: done",
        "attachment_payload_limit_exceeded (chat.postMessage)",
    ],
)
def test_text_without_a_secret_is_logged_unchanged(text: str) -> None:
    assert redact(text) == text


@cases("piece", ["a://b:", "password=", "a.", "token", "bearer ", "xoxb-", "authorization:a ", "'"])
def test_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 5


def test_the_log_file_has_the_same_lines_and_is_private_to_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "draftsman.log"
    stream = _screen(file=file)
    LOG.info("one", extra=keys(job="D-1"))
    LOG.info("two")
    assert file.read_text(encoding="utf-8") == stream.getvalue()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_file_never_gets_colour(tmp_path: Path) -> None:
    file = tmp_path / "draftsman.log"
    setup(LogSettings(file=file), Terminal())
    LOG.warning("careful")
    assert "\x1b" not in file.read_text(encoding="utf-8")


def test_text_that_is_not_unicode_is_written(tmp_path: Path) -> None:
    file = tmp_path / "draftsman.log"
    _screen(file=file)
    LOG.info("said", extra=keys(actor="half \ud800 a pair"))
    assert r'"half \\u{d800} a pair"' in file.read_text(encoding="utf-8")


def test_a_rotated_file_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "draftsman.log"
    _screen(file=file)
    LOG.info("before")
    file.rename(tmp_path / "draftsman.log.1")
    LOG.info("after")
    assert "after" in file.read_text(encoding="utf-8")


def _unwritable(tmp_path: Path) -> list[Path]:
    (tmp_path / "pipe").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "plain").touch()
    return [
        Path("/dev/full"),
        tmp_path / "missing" / "draftsman.log",
        tmp_path / "plain" / "draftsman.log",
        tmp_path,
        tmp_path / "pipe",
        tmp_path / "nul\0byte",
        tmp_path / ("long" * 100),
    ]


@pytest.mark.parametrize("which", range(7))
def test_a_file_that_cannot_be_written_is_reported_once_and_no_line_is_lost(
    which: int, tmp_path: Path
) -> None:
    file = _unwritable(tmp_path)[which]
    stream = _screen(file=file)
    for number in range(3):
        LOG.info("work %d goes on", number)
    first, warning, *rest = stream.getvalue().splitlines()
    assert " warning draftsman.log cannot write log file " in warning
    assert [line.partition(" info ")[2] for line in (first, *rest)] == [
        f"draftsman.test work {number} goes on" for number in range(3)
    ]


def test_a_file_that_an_unprivileged_user_may_not_write_is_reported_once(tmp_path: Path) -> None:
    """Run as another user where the tests run as root, which may write everywhere."""
    folder = tmp_path / "closed"
    folder.mkdir()
    script = (
        "import logging, os, pathlib, sys\n"
        "from draftsman.log import setup\n"
        "from draftsman.settings.log import LogSettings\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "folder.chmod(0o500)\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "setup(LogSettings(file=folder / 'draftsman.log'))\n"
        "for _ in range(3): logging.getLogger('draftsman').info('said')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=False
    )
    first, warning, *rest = done.stderr.splitlines()
    assert done.returncode == 0, done.stderr
    assert "Permission denied" in warning
    assert [line.split()[-1] for line in (first, *rest)] == ["said"] * 3


def test_each_outage_of_a_log_file_is_reported_until_writing_resumes(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "disk"
    stream = _screen(file=folder / "draftsman.log")
    LOG.info("first")
    folder.mkdir()
    LOG.info("second")
    assert "second" in (folder / "draftsman.log").read_text(encoding="utf-8")
    (folder / "draftsman.log").unlink()
    folder.rmdir()
    LOG.info("third")
    assert stream.getvalue().count("cannot write log file") == 2


def test_a_line_truncated_by_a_full_disk_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = _screen(file=tmp_path / "draftsman.log")
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real_write(file, data[:5]))
    LOG.info("said")
    assert "No space left on device" in stream.getvalue()


def test_a_broken_stderr_raises_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "draftsman.log"
    setup(LogSettings(file=file), Broken())
    LOG.info("said")
    assert "said" in file.read_text(encoding="utf-8")
    assert capsys.readouterr().err == ""


def test_a_line_can_be_parsed() -> None:
    stream = _screen()
    LOG.info("said", extra=keys(actor='quo"te \\ and space'))
    value = stream.getvalue().split("actor=", 1)[1]
    assert json.loads(value) == 'quo"te \\ and space'


# Records in JSON.


def _json_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_in_json_is_an_object_on_a_line(tmp_path: Path) -> None:
    file = tmp_path / "draftsman.log"
    stream = _screen(file=file, form="json")
    LOG.warning("claimed %d jobs", 3, extra=keys(job="D-142", run=2, queue=None, seconds=0.5))
    (entry,) = _json_lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "level": "warning",
        "logger": "draftsman.test",
        "message": "claimed 3 jobs",
        "job": "D-142",
        "run": 2,
        "seconds": 0.5,
    }
    assert file.read_text(encoding="utf-8") == stream.getvalue()


def test_a_record_in_json_has_the_worker_and_the_run_in_which_it_is_logged() -> None:
    stream = _screen(form="json")

    def work() -> None:
        WORKER.set("6d0f9a1c")
        LOG.info("starts")
        RUN.set(("D-1", 3))
        LOG.info("works")
        LOG.info("another", extra=keys(job="D-2"))

    copy_context().run(work)
    LOG.info("outside")
    fields = [
        (entry.get("worker"), entry.get("job"), entry.get("run")) for entry in _json_lines(stream)
    ]
    assert fields == [
        ("6d0f9a1c", None, None),
        ("6d0f9a1c", "D-1", 3),
        ("6d0f9a1c", "D-2", None),
        (None, None, None),
    ]


def test_no_text_breaks_a_line_in_json_or_controls_a_terminal() -> None:
    stream = _screen(form="json")
    text = "a\nb\x1b[31m\u202e\u2028\x9b\u00e9"
    LOG.info("%s", text, extra={"message_of": text, "level": "forged"})
    (line,) = stream.getvalue().splitlines()
    assert line.isascii()
    assert line.isprintable()
    entry = json.loads(line)
    assert (entry["message"], entry["message_of"], entry["level"]) == (text, text, "info")


def test_json_has_an_error_and_its_traceback_at_level_debug_only() -> None:
    for has_traceback in (False, True):
        stream = _screen("debug" if has_traceback else "info", form="json")
        try:
            raise RuntimeError("gone")
        except RuntimeError:
            LOG.exception("failed", extra={"ratio": float("nan")})
        (entry,) = _json_lines(stream)
        assert (entry["error"], entry["ratio"]) == ("RuntimeError: gone", "nan")
        assert ("traceback" in entry) is has_traceback


def test_lines_of_both_formats_are_parsed() -> None:
    event = LogEvent.WORKER_STARTED
    for form in FORMATS:
        stream = _screen(form=form)
        LOG.warning("worker w1", extra=keys(event=event))
        LOG.info("worker w1 is busy")
        first, second = map(parse_line, stream.getvalue().splitlines())
        assert first is not None
        assert (first.level, first.logger, first.event) == ("warning", "draftsman.test", event)
        assert second == LogLine("info", "draftsman.test", "worker w1 is busy", None)
    for line in ("", "{", "{}", "[1]", "{1: 2}", "two words"):
        assert parse_line(line) is None, line
