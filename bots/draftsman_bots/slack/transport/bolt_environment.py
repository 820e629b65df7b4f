"""The environment that Bolt reads by itself, and is not to read: what counts is configured."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PREFIX: Final = "SLACK_"
"""Begins every variable that Bolt looks for: with SLACK_CLIENT_ID and SLACK_CLIENT_SECRET, for
instance, it sets up an OAuth flow with a store of installations in files."""


@contextmanager
def hide_slack_variables() -> Iterator[None]:
    """Take these variables out of the environment for as long as the block, or the call, lasts."""
    found = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    for name in found:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(found)
