"""Sentences of the database about questions, answers and permission rules."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "denied": "denied by {by}",
    "denied_because": "denied by {by}: {reason}",
    "job_ended": "the job has ended",
    "other_closed": "another question was closed first",
    "rule_denied": "{voter} denied D-{job}/{question}",
    "most_messages": "D-{job} has 200 messages, the maximum; approve or deny it",
    "approval_undecided": "D-{job}: a job leaves an approval only when it was decided",
    "answer": "{voter} may not answer D-{job}/{question}",
    "workers_ask_for_commands": "{role} cannot ask for commands",
    "rule_time": "{actor} may not change the time of a rule",
    "change_rules": "{actor} may not change rules",
    "permission_requests_kept": "permission requests are never deleted",
    "rule_immutable": "a rule that ended and its pattern are kept",
    "rules_kept": "rules are never deleted",
    "rule_uses_kept": "uses of rules are never deleted",
    "new_is_open": "a new question must be open",
    "direct_change": "questions can be changed only through functions",
    "unsupported_resolution": (
        "the answers to D-{job}/{question} do not support the resolution {resolution}"
    ),
    "early_escalation": "an open question can be escalated only after it expired",
    "closed": "a closed question can only be superseded",
    "workers_extend": "workers cannot extend questions",
    "extension_time": "a question can be extended by more than 0 s and at most 366 days",
    "restore_expiry": "{actor} may not give a question an expiry again; operators may",
    "record_answer_change": "{role} cannot record a change of an answer",
    "answer_as": "{role} cannot answer as {source}:{account}",
    "answer_without_effect": (
        "D-{job}/{question}: an accepted answer closes its question in the same transaction"
    ),
    "not_answered": "{actor} did not answer D-{job}/{question}",
    "answer_effect": "an answer can only resolve its question and fail or resume the job",
    "mint_token": "{role} cannot mint a token for {approver}",
    "decide_as": "{role} cannot decide as {actor}",
    "closed_immutable": "a closed question is immutable",
    "questions_kept": "questions are never deleted",
    "escalated_once": "a question is escalated once",
    "answers_immutable": "answers are immutable",
}
