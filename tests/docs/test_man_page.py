"""The man page has every command, and man reads it without a complaint."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from draftsman_tui.cli.main import COMMANDS
from tests.docs.man_page import PAGE, man_page


def test_the_man_page_is_generated() -> None:
    assert man_page() == PAGE.read_text("utf-8"), "run: python -m tests.tui.cli.write_index"


def test_it_has_every_command_and_exit_code() -> None:
    lines = man_page().replace("\\-", "-").splitlines()
    assert [name for name in COMMANDS if f".B draftsman {name}" not in lines] == []
    assert ".B 130, 141" in lines


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_formats_it() -> None:
    command = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", str(PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "draftsman submit\n              Submit a job." in done.stdout
