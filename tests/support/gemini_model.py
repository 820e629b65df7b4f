"""The model of tests with Gemini CLI: the scripted model, at the root of its server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.support.fake_model import FakeModel, Turn, fake_model


@contextmanager
def gemini_model(script: Sequence[Turn]) -> Iterator[FakeModel]:
    """Serve a model for the block."""
    with fake_model(script) as model:
        model.url = model.url.removesuffix("/v1")
        yield model
