"""The app of a worker with a resource; each line of LIFESPAN_FILE is what happened."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

from draftsman import BlockingRunContext, job, lifespan


@lifespan
async def journal() -> AsyncIterator[Path]:
    path = Path(os.environ["LIFESPAN_FILE"])
    write(path, "open")
    yield path
    write(path, "close")


@job("cli:writes")
def writes(ctx: BlockingRunContext) -> None:
    write(journal(), f"run {ctx.job.name}")


def write(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
