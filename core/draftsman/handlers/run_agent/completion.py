"""The end of an iteration: work is validated and published, or goes back to the agent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from draftsman.domain.job import Mode
from draftsman.domain.messages.result_text import pr_url
from draftsman.domain.outcome import Done
from draftsman.domain.question import Answered, NoAnswer
from draftsman.domain.question_spec import QuestionSpec
from draftsman.domain.read_models import SavedProfile
from draftsman.domain.reserved_names import EVIDENCE, Owner
from draftsman.errors import Failure, UsageError
from draftsman.handlers.clone.workspace import Snapshot, Workspace
from draftsman.handlers.run_agent import failed_work
from draftsman.handlers.run_agent.agent_choice import DEFAULT_AGENT
from draftsman.handlers.run_agent.evidence.signed_statement import sign_statement
from draftsman.handlers.run_agent.iteration import Iteration, iterations_failure
from draftsman.handlers.run_agent.profile_limits import approval_of, check_paths, unapprovable
from draftsman.handlers.run_agent.publication.branch import publish
from draftsman.handlers.run_agent.publication.pull_request import open_for_job
from draftsman.handlers.run_agent.session.agent_session import AgentSession
from draftsman.handlers.run_agent.validation import Validation, recorded_validation, validate
from draftsman.handlers.worker_run import WorkerRun
from draftsman.settings import AgentSettings

PUBLISH: Final = "agent:publish"


@dataclass(frozen=True, slots=True)
class WorkCompletion:
    """Validation and publication of the work of an iteration, after its agent has ended."""

    run: WorkerRun
    workspace: Workspace
    session: AgentSession
    saved: SavedProfile | None
    agent: AgentSettings
    iteration: Iteration
    ref: str | None = None
    """Branch, tag or commit that the work started from; None: the default branch."""

    async def finish(self) -> Done | None:
        """Store the patch, publish the branch and return the job's result.

        None if the agent has to improve the work: required validators failed, or a person has
        sent a message.
        """
        await self._raise_error()
        answer = self.session.result
        if answer is None:
            raise ValueError("an agent without an error has a result")
        result: dict[str, Any] = {"summary": answer.summary, "data": answer.data}
        snapshot = await self.workspace.snapshot(self._commit_message(answer.summary))
        if await self._begin_for_messages(snapshot):
            return None
        result["files_changed"] = snapshot.files_changed
        if snapshot.files_changed == 0:
            if await self.run.has_patch():  # of an earlier run that asked a question
                await self.run.patch(b"")
            await self.iteration.finish(self.run, "unchanged")
            return await self._to_done(result)
        result |= {"insertions": snapshot.insertions, "deletions": snapshot.deletions}
        await self.run.patch(await self.workspace.diff(snapshot))
        if self.run.job.mode is not Mode.FIX:
            await self.iteration.finish(self.run, "reported", files_changed=snapshot.files_changed)
            return await self._to_done(result)
        validation = None
        if self.saved is None:
            changed = snapshot.files_changed
            await self.iteration.finish(self.run, "not_validated", files_changed=changed)
        else:
            validation = await self._validate(snapshot, self.saved)
            if validation.failed and not await self._is_draft(snapshot, validation, self.saved):
                return None
            await self._require_approval(snapshot, validation, self.saved)
            if await self._begin_for_messages(snapshot):
                return None
            result = validation.add_to(result)
            if validation.failed:
                result["draft"] = True
            await sign_statement(
                *(self.run, self.workspace, snapshot, self.saved, validation),
                iterations=self.iteration.number,
            )
            result["evidence"] = EVIDENCE
        await self._publish(snapshot, result)
        result |= await open_for_job(
            self.run, self.workspace, snapshot, result, validation, self.ref
        )
        return await self._to_done(result)

    async def _raise_error(self) -> None:
        """Raise the Failure of an agent that did not complete its work."""
        error, exit_code = self.session.error, self.session.exit_code
        if error is None and self.session.result is None:
            error = Failure(
                f"the agent exited with code {exit_code} without a result",
                origin="agent",
                code="protocol" if exit_code == 0 else "exit",
            )
        if error is not None:
            error.program_exit = exit_code
            await self.iteration.finish(self.run, "error", error=str(error)[:500])
            raise error

    async def _validate(self, snapshot: Snapshot, saved: SavedProfile) -> Validation:
        """Return the validation of the work, of an earlier run if it validated this tree."""
        validation = await recorded_validation(self.run, snapshot, saved)
        if validation is not None:
            return validation
        check_paths(saved.profile, await self.workspace.changed_paths(snapshot))
        if saved.profile.validation_commands or saved.profile.evidence is not None:
            await self._save_result(snapshot)
        validation = await validate(
            self.run, self.workspace, snapshot, saved, network=self.agent.network
        )
        await self.iteration.finish(
            self.run,
            validation.outcome,
            files_changed=snapshot.files_changed,
            failed=[item.name for item in validation.failed],
            check_files=list(validation.check_files[:100]),
            weakened=validation.weakened,
        )
        return validation

    async def _is_draft(
        self, snapshot: Snapshot, validation: Validation, saved: SavedProfile
    ) -> bool:
        """Return whether failed work is handed over as a draft; else another iteration begins.

        After the last iteration people decide. Raises Failure if the job stops.
        """
        failed, limit = validation.failed, saved.profile.max_iterations
        reason = self.iteration.end_reason(snapshot.tree, failed, limit)
        last = 0
        if reason is not None:
            question = failed_work.question_about(
                self.workspace.branch, reason, validation, more=limit
            )
            try:
                self.run.check_question(question)
            except UsageError:
                raise iterations_failure(reason) from None
            answer = await self._ask(question, snapshot)
            if failed_work.choice_of(answer, reason) == failed_work.DRAFT:
                return True
            last = self.iteration.number + limit
        await self.session.save_result(snapshot)
        await self.iteration.begin_next(self.run, snapshot.tree, failed, last)
        return False

    async def _require_approval(
        self, snapshot: Snapshot, validation: Validation, saved: SavedProfile
    ) -> None:
        """Park for an approval of work that exceeds a limit of the profile, unless approved."""
        paths = await self.workspace.changed_paths(snapshot)
        approval = approval_of(saved.profile, snapshot, paths, self.workspace.branch, validation)
        if approval is None:
            return
        try:
            self.run.check_question(approval)
        except UsageError as error:
            raise unapprovable(approval, error) from None
        await self._ask(approval, snapshot)  # a denial ends the job

    async def _ask(self, question: QuestionSpec, snapshot: Snapshot) -> Answered | NoAnswer:
        """Return the answer about this patch, or park; the next run continues without the agent."""
        patch = hashlib.sha256(await self.workspace.diff(snapshot)).hexdigest()

        async def shown() -> str:
            return patch

        if (answer := await self.run.find_answer(question, shown)) is not None:
            return answer
        await self._save_result(snapshot)
        return await self.run.ask_or_park(question, shown)

    async def _save_result(self, snapshot: Snapshot) -> None:
        """Record the work and the result, so that a later run continues without the agent."""
        if self.iteration.result is None and self.session.result is not None:
            await self.session.save_result(snapshot)
            fields = {"summary": self.session.result.summary, "data": self.session.result.data}
            await self.iteration.save_result(self.run, fields)

    async def _begin_for_messages(self, snapshot: Snapshot) -> bool:
        """Begin another iteration if a person has sent a message that the work does not have."""
        if not await self.session.misses_messages():
            return False
        await self.session.save_result(snapshot)
        await self.iteration.finish(self.run, "message", files_changed=snapshot.files_changed)
        await self.iteration.begin_next(self.run)
        return True

    async def _publish(self, snapshot: Snapshot, result: dict[str, Any]) -> None:
        """Push the branch, and add it to the result.

        The work is recorded first: an agent that ran again could report other work than this.
        """
        await self._save_result(snapshot)
        branch = self.workspace.branch
        result["commit"] = await self.run.step(
            PUBLISH, lambda _: publish(self.run, self.workspace, snapshot), owner=Owner.WORKER
        )
        result["branch"] = branch
        published: dict[str, Any] = {"branch": branch, "commit": snapshot.commit}
        if result.get("draft"):
            published["draft"] = True
        await self.run.event("branch_published", published, Owner.WORKER)

    async def _to_done(self, result: dict[str, Any]) -> Done:
        """Return the outcome with the agent's pull request and without paths of the worker."""
        if (url := pr_url(result)) is not None:
            result["pr_url"] = url
            await self.run.pull_request(url)
            line_delta = result.get("insertions", 0) - result.get("deletions", 0)
            changed = result["files_changed"]
            payload = {"pr_url": url, "files_changed": changed, "loc_delta": line_delta}
            await self.run.event("pr_created", payload, Owner.WORKER)
        await self.session.deliver_messages()
        return Done(self.workspace.relative(result))

    def _commit_message(self, summary: str) -> str:
        job = self.run.job
        name = job.repo_name or ""
        name = f"{job.repo_owner}/{name}" if job.repo_owner else name
        title = job.ticket_title or f"{job.agent or DEFAULT_AGENT} on {Path(name)}"
        return f"{title}\n\n{summary}\n\nMade by draftsman, {job.name}."
