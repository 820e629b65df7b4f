"""The end of an iteration: work is validated and published, or goes back to the agent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from draftsman.agent_runs import left_out_question
from draftsman.agent_runs.clones.commits import with_sign_off
from draftsman.agent_runs.clones.git import git_failure
from draftsman.agent_runs.clones.open_branches import onto_current_base
from draftsman.agent_runs.clones.workspace import Snapshot, Workspace
from draftsman.agent_runs.commit_texts import commit_message
from draftsman.agent_runs.iteration import iterations_failure
from draftsman.agent_runs.iteration_plan import IterationPlan
from draftsman.agent_runs.policy_check import (
    PolicyCheck,
    approvals_of,
    check_policy,
    conflict_fields,
    conflicts_of,
    current_policy,
    unapprovable,
    with_conflicts,
)
from draftsman.agent_runs.protocol.agent_messages import ResultMessage
from draftsman.agent_runs.publication import agent_pull_request, open_for_job, publish
from draftsman.agent_runs.session.agent_session import AgentSession
from draftsman.agent_runs.signed_statement import sign_statement
from draftsman.agent_runs.validation import failed_work
from draftsman.agent_runs.validation.fresh_clone import CommittedWork
from draftsman.agent_runs.validation.validation import Validation, recorded_validation, validate
from draftsman.deliveries.result_text import pr_url
from draftsman.errors import Failure, UsageError
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.job import Mode
from draftsman.jobs.reserved_names import EVIDENCE, Owner
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import is_quota
from draftsman.questions.question import Answered, NoAnswer, QuestionKind
from draftsman.questions.question_spec import QuestionSpec

NOT_FOUND_EXIT = 127
NOT_EXECUTABLE_EXIT = 126
"""Exit codes by which the sandbox, like a shell, reports a program that it cannot start."""
PUBLISH: Final = "agent:publish"


@dataclass(frozen=True, slots=True)
class WorkCompletion:
    """Validation and publication of the work of an iteration, after its agent has ended.

    Its methods are in the order in which `finish` calls them.
    """

    plan: IterationPlan
    workspace: Workspace
    session: AgentSession

    @property
    def run(self) -> WorkerRun:
        """The run of the iteration."""
        return self.plan.run

    async def finish(self) -> Done | None:
        """Store the patch, publish the branch and return the job's result.

        None if the agent has to improve the work: required validators failed, or a person has
        sent a message.
        """
        answer = await self._agent_result()
        if (published := await self._published()) is not None:
            fields, validation = published
            return await self._open(fields | {"data": answer.data}, validation)
        message = await self._commit_message(answer.summary)
        snapshot = await self.workspace.snapshot(message)
        if self.plan.iteration.result is not None:  # what was left out is not in this clone
            left_out = tuple(self.plan.checkpoint.get("left_out", ()))
            snapshot = replace(snapshot, left_out=left_out)
        if snapshot.refused:
            await self._keep_rest(snapshot)
        if await self._begin_for_messages(snapshot):
            return None
        decided = await self._decide_left_out(snapshot, message)
        if decided is None:
            return None
        snapshot = decided
        workspace, snapshot = await self._update_base(snapshot, message)
        if self.run.job.agent_request.mode is Mode.FIX and snapshot.files_changed:
            snapshot = await workspace.sign(snapshot, message)
        return await replace(self, workspace=workspace)._hand_over(snapshot, answer)

    async def _agent_result(self) -> ResultMessage:
        """Return the result of the agent; raises the Failure of an agent without one."""
        error = self.session.error
        result = self.session.result
        exit_code = self.session.exit_code
        if error is None and result is None:
            text = f"the agent exited with code {exit_code} without a result"
            code = "protocol" if exit_code == 0 else "exit"
            if exit_code in (NOT_FOUND_EXIT, NOT_EXECUTABLE_EXIT):
                problem = "not found" if exit_code == NOT_FOUND_EXIT else "not executable"
                text += f": its program is {problem} in the sandbox"
                code = "command_not_found"
            error = Failure(text, origin="agent", code=code)
        if error is not None:
            error.program_exit = exit_code
            await self.plan.iteration.finish(self.run, "error", error=str(error)[:500])
            raise error
        if result is None:
            raise ValueError("an agent without an error has a result")
        return result

    async def _published(self) -> tuple[dict[str, Any], Validation] | None:
        """Return the result and the validation of work that an earlier run of the job published.

        Nothing is validated, asked or signed again: only the pull request may be missing.
        """
        step = (await self.run.steps(Owner.WORKER)).get(PUBLISH)
        if step is None or step.status != "done":
            return None
        return dict(step.result["result"]), Validation.of(step.result["validation"])

    async def _commit_message(self, summary: str) -> str:
        fields = await self.plan.name_fields()
        template = self.plan.git.message
        text = commit_message(template, fields, title=self.plan.title, summary=summary)
        if not self.plan.git.sign_off:
            return text
        return await with_sign_off(text, self.workspace.identity.author, self.workspace.mirror)

    async def _keep_rest(self, snapshot: Snapshot) -> NoReturn:
        """Fail because of paths that git cannot record; patch and checkpoint have the rest."""
        if snapshot.files_changed:
            await self.run.patch(await self.workspace.diff(snapshot))
        await self.session.save_result(snapshot)
        paths = ", ".join(snapshot.refused)
        error = git_failure(
            f"the work has files that cannot be recorded: {paths}; remove or rename them and retry"
            " the job; its patch has the rest of the work",
            "tree",
        )
        await self.plan.iteration.finish(self.run, "error", error=str(error)[:500])
        raise error

    async def _begin_for_messages(self, snapshot: Snapshot) -> bool:
        """Begin another iteration if a person has sent a message that the work does not have.

        It has as many iterations until people decide as the work had at first.
        """
        if not await self.session.misses_messages():
            return False
        await self.session.save_result(snapshot)
        await self._finish_iteration("message", snapshot)
        iteration = self.plan.iteration
        await iteration.begin_next(self.run, last=iteration.number + self.plan.max_iterations)
        return True

    async def _decide_left_out(self, snapshot: Snapshot, message: str) -> Snapshot | None:
        """Return the work, with or without what git leaves out, as people or the profile decide.

        None if the agent goes on with it. Raises Failure if the job stops.
        """
        if self.plan.left_out == "include":
            snapshot = replace(snapshot, included={})
        if self.plan.left_out == "leave" or not snapshot.all_left_out:
            return snapshot
        question = left_out_question.question_about(self.workspace.branch, snapshot)
        try:
            self.run.check_question(question)
        except UsageError as error:
            raise left_out_question.failure(snapshot, str(error)) from None
        if snapshot.files_changed:
            await self.run.patch(await self.workspace.diff(snapshot))
        choice = left_out_question.choice_of(await self._ask(question, snapshot), snapshot)
        if choice == left_out_question.INCLUDE:
            return snapshot
        if choice == left_out_question.WITHOUT:
            return await self.workspace.without_included(snapshot, message)
        await self.session.save_result(replace(snapshot, included={}, left_out=()))
        await self._finish_iteration("left_out", snapshot)
        failed = [left_out_question.for_agent(snapshot)]
        await self.plan.iteration.begin_next(self.run, failed=failed)
        return None

    async def _update_base(self, snapshot: Snapshot, message: str) -> tuple[Workspace, Snapshot]:
        """Merge the moved base branch into the work if the policy says so."""
        if self.run.job.agent_request.mode is not Mode.FIX or snapshot.files_changed == 0:
            return self.workspace, snapshot
        policy = await current_policy(self.run, self.plan.repository.location)
        if policy.settings.update_base != "merge":
            return self.workspace, snapshot
        ref = self.plan.base_branch
        workspace, updated = await onto_current_base(self.workspace, snapshot, ref, message)
        if updated.base_sha != snapshot.base_sha:
            moved = {"from": snapshot.base_sha, "to": updated.base_sha}
            await self.run.event("base_updated", moved, Owner.WORKER)
        return workspace, updated

    async def _hand_over(self, snapshot: Snapshot, answer: ResultMessage) -> Done | None:
        """Validate and publish the work, as `finish`."""
        result: dict[str, Any] = {
            "summary": answer.summary,
            "data": answer.data,
            "files_changed": snapshot.files_changed,
        }
        if (changes := self.workspace.changes) is not None:
            result["uncommitted"] = {"commit": changes.id, "files": changes.files}
        if snapshot.left_out:
            result["left_out"] = list(snapshot.left_out)
        if snapshot.files_changed == 0:
            return await self._report_unchanged(result)
        result |= {"insertions": snapshot.insertions, "deletions": snapshot.deletions}
        await self.run.patch(await self.workspace.diff(snapshot))
        if self.run.job.agent_request.mode is not Mode.FIX:
            await self._finish_iteration("reported", snapshot)
            return await self._to_done(result)
        check = await self._check_policy(snapshot)
        validation = await self._validate(snapshot)
        if validation.failed and not await self._is_draft(snapshot, validation):
            return None
        await self._require_approvals(snapshot, validation, check)
        if await self._begin_for_messages(snapshot):
            return None
        result = validation.add_to(result)
        if validation.failed:
            result["draft"] = True
        if self.plan.saved is not None:
            await self._sign(snapshot, validation, check)
            result["evidence"] = EVIDENCE
        await self._check_again(snapshot, validation, check)
        result = await self._publish(snapshot, result, validation)
        return await self._open(result, validation)

    async def _report_unchanged(self, result: dict[str, Any]) -> Done:
        """Return the outcome of an iteration that changed no file."""
        if await self.run.has_patch():  # of an earlier run that asked a question
            await self.run.patch(b"")
        await self.plan.iteration.finish(self.run, "unchanged")
        return await self._to_done(result)

    async def _check_policy(self, snapshot: Snapshot) -> PolicyCheck:
        """Return the decision of the policy; raises Failure for denied work."""
        location = self.plan.repository.location
        try:
            return await check_policy(self.run, self.workspace, snapshot, location)
        except Failure as error:
            if is_quota(error) and self.plan.iteration.result is None:
                await self.plan.iteration.finish(self.run, "denied", error=str(error)[:500])
            raise

    async def _validate(self, snapshot: Snapshot) -> Validation:
        """Return the validation of the work, of an earlier run if it validated this tree."""
        saved = self.plan.saved
        if saved is None:
            if self.plan.iteration.result is None:
                await self._finish_iteration("not_validated", snapshot)
            return Validation()
        work = CommittedWork(
            run=self.run,
            workspace=self.workspace,
            snapshot=snapshot,
            saved=saved,
            network=self.plan.agent.network,
        )
        validation = await recorded_validation(work)
        if validation is not None:
            return validation
        if saved.profile.validation_commands or saved.profile.evidence is not None:
            await self._save_result(snapshot)
        validation = await validate(work)
        await self._finish_iteration(
            validation.outcome,
            snapshot,
            failed=[command.name for command in validation.failed],
            check_files=list(validation.check_files[:100]),
            weakened=validation.weakened,
        )
        return validation

    async def _is_draft(self, snapshot: Snapshot, validation: Validation) -> bool:
        """Return whether failed work is handed over as a draft; else another iteration begins.

        After the last iteration people decide. Raises Failure if the job stops.
        """
        iteration = self.plan.iteration
        limit = self.plan.max_iterations
        reason = iteration.end_reason(snapshot.tree, validation.failed, limit)
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
            last = iteration.number + limit
        await self.session.save_result(snapshot)
        await iteration.begin_next(self.run, snapshot.tree, failed=validation.failed, last=last)
        return False

    async def _require_approvals(
        self, snapshot: Snapshot, validation: Validation, check: PolicyCheck
    ) -> None:
        """Park for the next approval that the policy or the validation asks for, if any."""
        for approval in approvals_of(check, self.workspace.branch, validation):
            try:
                self.run.check_question(approval)
            except UsageError as error:
                raise unapprovable(approval, error, self.run.job.number) from None
            await self._ask(approval, snapshot)  # a denial ends the job

    async def _ask(self, question: QuestionSpec, snapshot: Snapshot) -> Answered | NoAnswer:
        """Return the answer about this patch, or park; the next run continues without the agent."""
        patch = hashlib.sha256(await self.workspace.diff(snapshot)).hexdigest()

        async def shown() -> str:
            return patch

        if (answer := await self.run.find_answer(question, shown)) is not None:
            return answer
        await self._save_result(snapshot)
        if question.kind is QuestionKind.APPROVAL:
            ref = self.plan.base_branch
            question = await with_conflicts(self.run, self.workspace, snapshot, ref, question)
        return await self.run.ask_or_park(question, shown)

    async def _save_result(self, snapshot: Snapshot) -> None:
        """Record the work and the result, so that a later run continues without the agent."""
        if self.plan.iteration.result is None and self.session.result is not None:
            await self.session.save_result(snapshot)
            fields = {"summary": self.session.result.summary, "data": self.session.result.data}
            await self.plan.iteration.save_result(self.run, fields)

    async def _sign(self, snapshot: Snapshot, validation: Validation, check: PolicyCheck) -> None:
        """Store the evidence about the work, which names the approvals."""
        if self.plan.saved is None:
            return
        await sign_statement(
            run=self.run,
            workspace=self.workspace,
            snapshot=snapshot,
            saved=self.plan.saved,
            validation=validation,
            check=check,
            iterations=self.plan.iteration.number,
        )

    async def _check_again(
        self, snapshot: Snapshot, validation: Validation, check: PolicyCheck
    ) -> None:
        """Ask again right before the push if the policy has changed since the approvals."""
        location = self.plan.repository.location
        while (await current_policy(self.run, location)).digest != check.policy.digest:
            check = await self._check_policy(snapshot)
            await self._require_approvals(snapshot, validation, check)
            await self._sign(snapshot, validation, check)

    async def _publish(
        self, snapshot: Snapshot, result: dict[str, Any], validation: Validation
    ) -> dict[str, Any]:
        """Push the branch, and return the result with it.

        The work is recorded first: an agent that ran again could report other work than this.
        """
        await self._save_result(snapshot)

        async def effect(_: str) -> dict[str, Any]:
            commit = await publish(self.run, self.workspace, snapshot)
            ref = self.plan.base_branch
            conflicts = conflict_fields(await conflicts_of(self.run, self.workspace, snapshot, ref))
            published: dict[str, Any] = {"branch": self.workspace.branch, "commit": commit}
            published |= conflicts
            draft = {"draft": True} if result.get("draft") else {}
            await self.run.event("branch_published", published | draft, Owner.WORKER)
            fields = {key: value for key, value in result.items() if key != "data"} | published
            return {"result": fields, "validation": validation.as_json()}

        record = await self.run.step(PUBLISH, effect, owner=Owner.WORKER)
        return {**record["result"], "data": result["data"]}

    async def _open(self, result: dict[str, Any], validation: Validation) -> Done:
        """Open the pull request of published work, and return the job's result."""
        result |= await open_for_job(
            self.run,
            self.workspace,
            result,
            validation,
            ref=self.plan.base_branch,
            message=await self._commit_message(str(result["summary"])),
        )
        return await self._to_done(result)

    async def _to_done(self, result: dict[str, Any]) -> Done:
        """Return the outcome with the pull request and without paths of the worker."""
        url = pr_url(result)
        if url is None:
            claimed = result["data"].get("pr_url")
            url = agent_pull_request(self.run, self.plan.repository.source, claimed)
        if url is not None:
            result["pr_url"] = url
            await self.run.pull_request(url)
            line_delta = result.get("insertions", 0) - result.get("deletions", 0)
            changed = result["files_changed"]
            payload = {"pr_url": url, "files_changed": changed, "loc_delta": line_delta}
            await self.run.event("pr_created", payload, Owner.WORKER)
        await self.session.deliver_messages()
        return Done(self.workspace.relative(result))

    async def _finish_iteration(self, outcome: str, snapshot: Snapshot, **fields: Any) -> None:
        """Write the event of the end of the iteration, with the size of its work."""
        await self.plan.iteration.finish(
            self.run, outcome, files_changed=snapshot.files_changed, **fields
        )
