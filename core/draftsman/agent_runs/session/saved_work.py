"""The saved work of an agent: its checkpoints, and the patch that people see."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.protocol.agent_messages import CheckpointMessage
from draftsman.agent_runs.session.quota_tracker import QuotaTracker, size_of
from draftsman.errors import Failure
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.runs.quota import Quota
from draftsman.sandbox.processes.process import AgentProcess

EXIT_SECONDS: Final = 2.0
"""Time for an agent to end that could not be stopped."""


class SavedWork:
    """The latest checkpoint: `commit` of the tree, and `data` of the agent."""

    def __init__(
        self,
        run: WorkerRun,
        workspace: Workspace,
        repo: dict[str, Any] | None = None,
        commit: str | None = None,
        data: Any = None,
    ) -> None:
        self._run = run
        self._workspace = workspace
        self._repo = repo
        self._commit = commit
        self._data = data
        self._quotas = QuotaTracker(run)

    async def checkpoint(
        self, process: AgentProcess, message: CheckpointMessage, messages: Sequence[int]
    ) -> str:
        """Store the agent's state and a bundle of the current tree, in one transaction.

        `messages` are the messages of people that it has. Return the id of the tree.
        """
        try:
            snapshot = await self._read_tree(process, message.home)
        except Failure as error:
            # it may exit without waiting for the reply: then the tree is read after its end
            if error.code != "not_frozen" or not await process.ends_within(EXIT_SECONDS):
                raise
            snapshot = await self._read_tree(process, message.home)
        await self.save(snapshot, message.data, messages)
        return snapshot.tree

    async def save_running(self, process: AgentProcess) -> None:
        """Store the current tree of a running agent, with the data of the latest checkpoint."""
        await self.save(await self._read_tree(process))

    async def save(
        self, snapshot: Snapshot, data: Any = None, messages: Sequence[int] = ()
    ) -> None:
        """Store a checkpoint of the tree; without `data`, with that of the latest checkpoint."""
        self._data = self._data if data is None else data
        bundle = await self._workspace.bundle(snapshot)
        saved = {"agent": self._data, "base_sha": snapshot.base_sha}
        saved |= {"repo": self._repo} if self._repo else {}
        saved |= {"left_out": list(snapshot.left_out)} if snapshot.left_out else {}
        saved |= {"included": dict(snapshot.included)} if snapshot.included else {}
        if (changes := self._workspace.changes) is not None:
            saved |= {"changes": changes.content}
        if snapshot.parents:
            follow_up = {"job": self._run.job.number, "parents": list(snapshot.parents)}
            saved |= {"follow_up": follow_up}
        size = size_of(self._data) + len(bundle or b"")
        await self._quotas.spend(Quota.CHECKPOINTS, size)
        await self._run.checkpoint(saved, bundle, messages)
        self._commit = snapshot.commit

    async def patch(self) -> bytes | None:
        """Return the patch of the latest checkpoint, from which the next run starts.

        None if it is too large for an artifact.
        """
        try:
            return await self._workspace.patch(self._commit) if self._commit else b""
        except Failure as error:
            if error.code != "too_large":
                raise
            self._run.log.write(f"[no patch] {error}")
            return None

    async def patch_sha256(self) -> str | None:
        """Return the SHA-256 of `patch()`; None without a patch."""
        patch = await self.patch()
        return None if patch is None else hashlib.sha256(patch).hexdigest()

    async def _read_tree(self, process: AgentProcess, home: Sequence[str] = ()) -> Snapshot:
        """Commit the current tree, and store files of the home, while the agent is stopped."""
        async with process.frozen():
            snapshot = await self._workspace.snapshot(f"{self._run.job.name}: work in progress")
            for path in snapshot.refused:
                self._run.log.write(f"[left out] {path}")
            if home:
                await self._workspace.store_home(home)
        return snapshot
