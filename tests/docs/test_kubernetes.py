"""The example for Kubernetes gives a worker the time that its settings require."""

from __future__ import annotations

import json
import re

import click

from draftsman.settings import Settings
from draftsman.settings.workers import WorkerSettings
from draftsman_tui.cli import main
from tests.docs.pages import DOCS

MANIFEST = (DOCS / "examples" / "kubernetes.yaml").read_text(encoding="utf-8")


def _single(pattern: str) -> str:
    [match] = re.findall(pattern, MANIFEST, re.MULTILINE)
    return str(match)


def test_worker_exits_before_the_grace_period_ends() -> None:
    grace = float(_single(r"^ *terminationGracePeriodSeconds: (\d+)$"))
    before = float(json.loads(_single(r'command: (\["sleep", .*\])$'))[1])
    worker = WorkerSettings()
    assert (before, grace) == (5, 65)
    assert worker.drain + worker.abort < 60 == grace - before
    assert "WORKER__" not in MANIFEST, "it changes the times that are compared here"


def test_times_in_the_comment_match_the_settings() -> None:
    worker = WorkerSettings()
    seconds = [float(second) for second in re.findall(r"^#   (\d+) s ", MANIFEST, re.MULTILINE)]
    end = 5 + worker.drain + worker.abort
    assert seconds == [0, 5, 5 + worker.drain, end, 65]
    assert f"worker.drain = {worker.drain:g} s" in MANIFEST
    assert f"worker.abort = {worker.abort:g} s" in MANIFEST


def test_probes_use_the_health_port_and_wait_for_a_lease() -> None:
    port = _single(r'"--health-port", "(\d+)"')
    assert _single(r"containerPort: (\d+)") == port
    assert re.findall(r"path: (/\w+), port: health", MANIFEST) == ["/healthz", "/readyz"]
    period = _single(r"^ *periodSeconds: (30)$")
    failures = _single(r"failureThreshold: (\d+)$")
    assert float(period) * float(failures) == WorkerSettings().lease
    assert f"worker.lease = {WorkerSettings().lease:g} s" in MANIFEST


def test_commands_and_variables_exist() -> None:
    for line in re.findall(r'command: (\["draftsman".*\])$', MANIFEST, re.MULTILINE):
        _, name, *arguments = json.loads(line)
        command = main.cli.get_command(click.Context(main.cli), name)
        assert command is not None
        command.make_context(name, arguments)
    known = {f"DRAFTSMAN_{name}".upper() for name in Settings.model_fields} | {"DRAFTSMAN_CONFIG"}
    named = set(re.findall(r"DRAFTSMAN_\w+", MANIFEST))
    assert named <= known
    assert "DRAFTSMAN_DATABASE_URL" in named
