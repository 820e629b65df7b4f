"""Programs of the upgrade tests, with the current code or that of a release."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.acceptance.processes import Installation, Process
from tests.support.fork_server import NEW_INTERPRETER
from tests.upgrade.releases import Release, checkout, unpack

HANDLERS: Final = """
import asyncio, os
from pathlib import Path
import draftsman
from draftsman import Done
HERE = Path(os.environ["DRAFTSMAN_DATA_DIR"]).parent
def note(ctx):
    with open(HERE / "ran", "a") as ledger:
        ledger.write(f"{ctx.job.number} {draftsman.__file__}\\n")
async def quick(ctx):
    note(ctx)
    return Done({})
async def held(ctx):
    (HERE / "held").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    note(ctx)
    return Done({})
async def asks(ctx):
    await ctx.ask("pick", "Which one?", choices=["red", "blue"], never_expires=True)
    note(ctx)
    return Done({})
"""
START: Final = """
import asyncio, sys, draftsman
from draftsman import log, settings
loaded = settings.load(None)
log.setup(loaded.log)
print(draftsman.__file__, file=sys.stderr)
"""
WORKER: Final = f"""{START}
from draftsman.worker_main import run_worker
sys.exit(asyncio.run(run_worker(loaded)))
"""
SUBMITTER: Final = f"""{START}
import os
from pathlib import Path
from draftsman.runtime import open_runtime
from draftsman.jobs.requests.service.submissions import invocation
HERE = Path(os.environ["DRAFTSMAN_DATA_DIR"]).parent
async def main():
    async with open_runtime(loaded) as rt:
        actor = await rt.actor()
        for type in ("held", "asks"):
            await rt.submissions.submit(invocation(type=type), actor)
        while not (HERE / "stop").exists():
            await rt.submissions.submit(invocation(type="quick"), actor)
            await asyncio.sleep(0.05)
asyncio.run(main())
"""
"""Submits jobs sequentially until the file `stop` exists."""
MIGRATE: Final = """
import asyncio, json, os, sys
from draftsman import resources
from draftsman.database import migrate
found = [*resources.migrations(), {wide!r}]
resources.migrations = lambda: found
children = []
for number in range({processes}):
    if (child := os.fork()) == 0:
        applied = asyncio.run(migrate.migrate(os.environ["DRAFTSMAN_DATABASE_URL"]))
        os.write(1, json.dumps(applied).encode() + b"\\n")
        os._exit(0)
    children.append(child)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""
"""Migrates in several processes at once; each prints its applied migrations."""
WIDE_MIGRATION: Final = (
    "9999_wide",
    """INSERT INTO draftsman.schema_migrations (name) VALUES ('9999_wide');
       ALTER TABLE draftsman.job_states ADD COLUMN test_extra text NOT NULL DEFAULT 'x';
       ALTER TABLE draftsman.job_runs ADD COLUMN test_extra int;
       ALTER TABLE draftsman.job_events ADD COLUMN test_extra int""",
)
"""An additional migration that locks every table that workers write all the time."""


def _roots(core: Path) -> tuple[str, str]:
    """Return the folders of the packages of unpacked code."""
    return str(core), str(core.parent / "bots")


class Upgrade:
    """An installation with two versions on a database."""

    def __init__(self, installation: Installation, release: Release) -> None:
        self.installation = installation
        self.code = unpack(release.files, installation.folder / "release")
        (installation.folder / "both.py").write_text(HANDLERS)
        paths = {f"handlers.{name}": f"both:{name}" for name in ("quick", "held", "asks")}
        installation.configure(None, worker__slots=4, worker__poll=0.2, sweeps__lease=2, **paths)

    def old(self, script: str) -> Process:
        """Start a script with the code of the release."""
        path = self.installation.environment()["PYTHONPATH"]
        env = {"PYTHONPATH": os.pathsep.join([*_roots(self.code), path])}
        return self.installation.start("release", env=env, through=(sys.executable, "-c", script))

    async def next(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run a command of a version that has an additional migration."""
        name, sql = WIDE_MIGRATION
        files = checkout() | {f"migrations/{name}.sql": sql.encode()}
        code = unpack(files, self.installation.folder / "next")
        path = self.installation.environment()["PYTHONPATH"]
        env = {"PYTHONPATH": os.pathsep.join([*_roots(code), path]), NEW_INTERPRETER: "1"}
        return await self.installation.run(*args, **env)

    async def migrate(self, processes: int) -> list[list[str]]:
        """Migrate beyond the current schema in several processes; return the migrations of each."""
        script = MIGRATE.format(wide=WIDE_MIGRATION, processes=processes)
        process = self.installation.start("today", through=(sys.executable, "-c", script))
        assert await process.end() == 0, process.output_text
        return [json.loads(line) for line in process.output_text.splitlines()]

    def ran(self) -> list[tuple[int, bool]]:
        """Return the jobs that ran, a job for each of its runs, and whether the release ran it."""
        ledger: Path = self.installation.folder / "ran"
        lines = ledger.read_text().splitlines() if ledger.exists() else []
        entries = [line.split() for line in lines]
        return [(int(job), Path(file).is_relative_to(self.code)) for job, file in entries]
