"""Protection from environment variables that Bolt reads on its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PREFIX: Final = "SLACK_"
"""Prefix of all variables that Bolt reads: SLACK_CLIENT_ID and SLACK_CLIENT_SECRET, for instance,
make it set up an OAuth flow with a store of installations in files.
"""


@contextmanager
def hide_slack_variables() -> Iterator[None]:
    """Remove these variables from the environment during the block or call."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
