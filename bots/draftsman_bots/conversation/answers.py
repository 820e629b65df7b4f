"""Decisions and answers in texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from draftsman.errors import UsageError
from draftsman.questions.answer import ParsedAnswer, near_choices, parse_answer
from draftsman.questions.question import Decision, Question, QuestionKind
from draftsman.questions.response import build_response
from draftsman_bots.conversation.typography import DASHES, LONG_DASHES, bare, plain, stripped

MIN_NEAR: Final = 3
"""Characters of a text that is a mistyped choice."""
VERBS: Final = {
    "approve": Decision.APPROVE,
    "deny": Decision.DENY,
    "request-changes": Decision.REQUEST_CHANGES,
}
"""The decisions of commands."""
_REASONED: Final = re.compile(r"(deny|request[ -]changes)(?=[\s,:;-]|$)", re.IGNORECASE)
_LEADING: Final = re.compile(rf"\s*(?:[,:;]|[{DASHES}]+(?=\s)|[{LONG_DASHES}]+)?")
_WORDS: Final = frozenset({*VERBS, "yes", "no", "ok", "okay", "approved", "denied", "y", "lgtm"})
_NEAR_VERB: Final = 0.75
"""How alike a mistyped decision is to it, of 1: `aprove` and `dney`, not `improve` or `done`."""


@dataclass(frozen=True, slots=True)
class ApprovalDecision:
    """A decision on an approval, with its reason, or what to change."""

    decision: Decision
    reason: str | None = None

    @property
    def verb(self) -> str:
        """The command of the decision."""
        return next(verb for verb, decision in VERBS.items() if decision is self.decision)


def parse_decision(text: str) -> ApprovalDecision | None:
    """Parse exactly `approve`, `deny` with an optional reason, or `request changes` with a text."""
    text = stripped(text)
    word = verb_of(bare(text))
    if word in VERBS:
        return ApprovalDecision(VERBS[word])
    match = _REASONED.match(plain(text))
    if match is None or text[match.end() : match.end() + 1] == "-":
        return None
    return ApprovalDecision(VERBS[verb_of(match[1])], reason_of(text[match.end() :]))


def reason_of(text: str) -> str | None:
    """Return the reason after a decision and perhaps a dash; None without one."""
    return stripped(_LEADING.sub("", text, count=1)) or None


def is_decision_word(text: str) -> bool:
    """Return whether a line is a word for a decision, also one that does not decide.

    Such as `LGTM`, or `aprove`.
    """
    word = verb_of(bare(text))
    near = get_close_matches(word, VERBS, 1, _NEAR_VERB)
    return word in _WORDS or any(verb.count("-") == word.count("-") for verb in near)


def verb_of(words: str) -> str:
    """Return the name of a command as it is written: `Request changes` is `request-changes`."""
    return plain(words).casefold().replace(" ", "-")


def accepting_questions(questions: Sequence[Question], text: str) -> list[Question]:
    """Return the questions that accept this text: as a choice, or as free text."""
    return [question for question in questions if _parse(question, text) is not None]


def names_choice(question: Question, text: str) -> bool:
    """Return whether a text names a choice of the question."""
    answer = _parse(question, text)
    return answer is not None and answer.value is not None


def nearly_names_choice(question: Question, text: str) -> bool:
    """Return whether a whole text is nearly the name of a choice: it is rather mistyped than talk.

    A word of one or two letters begins many names.
    """
    is_word = len(stripped(text)) >= MIN_NEAR and "\n" not in stripped(text)
    is_input = question.kind is QuestionKind.INPUT
    return is_word and is_input and bool(near_choices(question, stripped(text)))


def _parse(question: Question, text: str) -> ParsedAnswer | None:
    if question.kind is not QuestionKind.INPUT:
        return None
    try:
        return parse_answer(question, build_response("text", text=text))
    except UsageError:
        return None
