"""The alert rules, evaluated by Prometheus over recorded series."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.docs.alerts import ALERTS, FOLDER, RULES, TESTS

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool (Debian's package prometheus) is not installed",
)


def promtool(*args: str) -> str:
    """Return what promtool says of the files."""
    done = subprocess.run(["promtool", *args], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_valid() -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", RULES.name)


def test_each_alert_fires_for_its_series_and_for_no_others() -> None:
    assert "SUCCESS" in promtool("test", "rules", TESTS.name)
