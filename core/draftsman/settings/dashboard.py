"""Settings of the dashboard."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from draftsman.settings.section import Section


class OwnCommandSettings(Section):
    """A program that a key of the dashboard runs."""

    run: str = Field(min_length=1, max_length=1000)
    """The command line, without a shell. {job}, {number}, {title}, {repo} and {url} are values of
    the selected job."""
    key: str = Field("", max_length=100)
    """The key, several with commas; unset: only :NAME and the palette."""
    background: bool = False
    """Whether it runs beside the screen, without a terminal."""


class DashboardSettings(Section):
    """The dashboard (docs/dashboard.md); its options override these."""

    theme: Literal["dark", "light", "contrast", "none"] | None = Field(None, examples=["light"])
    """dark, light, contrast or none. Unset: the last theme that the key t selected, initially
    dark."""
    view: str | None = Field(None, min_length=1, max_length=40, examples=["inbox"])
    """The initial table or saved view; `attention` has the jobs that need a person first. Unset:
    jobs."""
    alerts: tuple[Literal["bell", "notification", "title"], ...] = (
        "bell",
        "notification",
        "title",
    )
    """How the terminal alerts to a question for you: its bell, a notification (OSC 9 or 777), and
    the number of questions in the title of the window. []: not at all."""
    commands: dict[str, OwnCommandSettings] = Field(
        default_factory=dict,
        examples=[{"checks": {"key": "f5", "run": "gh pr checks --watch {url}"}}],
    )
    """Own commands by name: `run` with values of the selected job, its `key`, and `background`."""
    keys: dict[str, str] = Field(default_factory=dict, examples=[{"inbox": "i"}])
    """Keys of a command instead of the default, several with commas; help (?) has the names."""
