"""The option that names the module with the job types."""

from __future__ import annotations

from typing import Final

import click

from draftsman_tui.terminal import params

APP: Final = click.option(
    "--app",
    "module",
    type=params.TEXT,
    metavar="MODULE",
    help="Module of this folder, or installed, that declares job types with @job.",
)
