"""Options with targets of messages."""

from __future__ import annotations

import click

from draftsman.channels.targets import target_forms


class TargetOption(click.Option):
    """An option whose help has the notations of the channels that are installed."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names and the help of the option."""
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], f"{record[1]}: {target_forms()}.")
