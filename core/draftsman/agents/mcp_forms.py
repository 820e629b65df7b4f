"""Forms of servers of the Model Context Protocol (MCP), as questions that people answer.

Their shape is that of `elicitation/create` in the MCP specification of 2025-11-25: a `message`, and
a `requestedSchema` whose properties are the fields.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from draftsman.agents.agent_client import AgentClient
from draftsman.agents.permissions import GRACE, canonical_digest
from draftsman.agents.program import Message

# Questions of an agent's tools to people, as questions of the job.
#
# An answer has a slot, `input:N`, which is the key of its question and of a step. The step is
# pending until the agent has the answers of all questions that it asked together: an agent that
# asks the same questions again, because its run was interrupted, gets the same answers.


PREFIX: Final = "input:"
MAX_TEXT: Final = 2500
MAX_VALUE: Final = 150
MAX_DESCRIPTION: Final = 500
MAX_CHOICES: Final = 50


def stored_value(text: str) -> str:
    """Return the value of a choice as its question stores it, which is that of its answer."""
    return unicodedata.normalize("NFKC", text).strip()[:MAX_VALUE].strip()


def matching_key(text: str) -> str:
    """Return a key that is equal for choices that draftsman takes for the same."""
    folded = unicodedata.normalize("NFD", stored_value(text)).casefold()
    folded = unicodedata.normalize("NFKD", folded).casefold()
    return unicodedata.normalize("NFKC", folded).strip()


class InputQuestion(NamedTuple):
    """A question of a tool; `name` is its name within the call of the tool."""

    name: str
    text: str
    choices: tuple[Mapping[str, str], ...] = ()
    freeform: bool = True

    @classmethod
    def of(
        cls, name: str, text: str, choices: Iterable[tuple[str, str]] = (), *, freeform: bool = True
    ) -> Self:
        """Return a question with pairs of values and descriptions, within the limits of questions.

        Two choices with the same value are a single choice.
        """
        by_key: dict[str, dict[str, str]] = {}
        for value, description in choices:
            choice = {"value": stored_value(value)}
            if description:
                choice["description"] = description[:MAX_DESCRIPTION]
            if choice["value"]:
                by_key.setdefault(matching_key(value), choice)
        listed = tuple(by_key.values())[:MAX_CHOICES]
        return cls(name, text.strip()[:MAX_TEXT] or name, listed, freeform or not listed)

    @property
    def digest(self) -> str:
        """The SHA-256 of the question, to which its answer is bound."""
        choice_values = [choice["value"] for choice in self.choices]
        return canonical_digest([self.name, self.text, choice_values, self.freeform])


class Inputs:
    """The answers of a job, and the questions without an answer."""

    def __init__(self, client: AgentClient, name: str) -> None:
        self._client = client
        self._name = name
        self._answers: dict[str, Mapping[str, Any]] = dict(client.start["answers"])
        self._slots: set[str] = set()
        self._open: dict[str, str] = {}
        self._answered: set[str] = set()
        for key, step in client.start["steps"].items():
            if key.startswith(PREFIX):
                self._slots.add(key)
                if step["state"] == "pending":
                    self._open[step["invocation_id"] or ""] = key

    def answer_all(self, questions: Sequence[InputQuestion]) -> dict[str, str]:
        """Return the answers by name; else ask people, which parks the run (RunParked)."""
        return {question.name: _text(self._answer(question)) for question in questions}

    def give(self, questions: Sequence[InputQuestion]) -> None:
        """Remember that the agent gets the answers now."""
        self._answered |= {question.digest for question in questions}

    def finish(self) -> None:
        """Record that the agent has the answers that it was given."""
        for bound in self._answered:
            if (key := self._open.pop(bound, None)) is not None:
                self._client.call("step", key=key, state="done")
        self._answered = set()

    def _answer(self, question: InputQuestion) -> Mapping[str, Any]:
        bound = question.digest
        if (key := self._open.get(bound)) is not None and key in self._answers:
            return self._answers[key]
        key = f"{PREFIX}{len(self._slots) + 1}"
        answer = self._client.call(
            "ask",
            key=key,
            text=f"{self._name} asks:\n\n{question.text}",
            choices=question.choices,
            freeform=question.freeform,
            grace=GRACE,
        )
        self._client.call("step", key=key, state="pending", invocation_id=bound)
        self._slots.add(key)
        self._open[bound] = key
        self._answers[key] = answer
        return answer


def _text(answer: Mapping[str, Any]) -> str:
    return str(answer.get("value") or answer.get("text") or "")


DECLINE: Final = "decline"
YES: Final = "yes"
NO: Final = "no"


def fields_of(params: Message) -> dict[str, Message]:
    """Return the fields of a form by name."""
    schema = params.get("requestedSchema")
    listed = schema.get("properties") if isinstance(schema, dict) else None
    fields = listed if isinstance(listed, dict) else {}
    return {str(name): field for name, field in fields.items() if isinstance(field, dict)}


def form_questions(params: Message) -> list[InputQuestion] | None:
    """Return a question for each field of an MCP form; None for another kind of elicitation."""
    if (params.get("mode") or "form") != "form":
        return None
    message = str(params.get("message") or "")
    questions = []
    for name, field in fields_of(params).items():
        choices = [(value, "") for value in _values(field)]
        described = field.get("description") or field.get("title")
        text = f"{message}\n\n{described}" if described else message
        if len(fields_of(params)) > 1:
            text += f"\n\n({name})"
        choices.append((DECLINE, "the tool gets no answer"))
        freeform = field.get("type") != "boolean" and not _values(field)
        questions.append(InputQuestion.of(name, text, choices, freeform=freeform))
    return questions


def form_content(params: Message, answers: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the content of a form; None if a person declined, or wrote no number for a number."""
    content: dict[str, Any] = {}
    for name, field in fields_of(params).items():
        answer = answers[name]
        if answer == DECLINE:
            return None
        try:
            content[name] = _typed(_listed(answer, _values(field)), field.get("type"))
        except ValueError:
            return None
    return content


def _values(field: Message) -> list[str]:
    if field.get("type") == "boolean":
        return [YES, NO]
    if field.get("type") == "array":
        item_field = field.get("items")
        return _values({**item_field, "type": "string"}) if isinstance(item_field, dict) else []
    listed = field.get("enum")
    if isinstance(listed, list):
        return [str(value) for value in listed]
    listed = field.get("oneOf") or field.get("anyOf")
    constants = listed if isinstance(listed, list) else []
    return [str(item["const"]) for item in constants if isinstance(item, dict) and "const" in item]


def _listed(answer: str, choice_values: Sequence[str]) -> str:
    """Return the value of the form that an answer chose, as the form lists it; else the answer."""
    return next((choice for choice in choice_values if stored_value(choice) == answer), answer)


def _typed(answer: str, kind: Any) -> Any:
    """Return the value of an answer; raises ValueError if it is not of this type."""
    if kind == "boolean":
        return answer == YES
    if kind == "array":
        return [answer]
    if kind == "integer":
        return int(answer)
    if kind == "number" and not math.isfinite(number := float(answer)):
        raise ValueError(answer)  # JSON has no such number
    return number if kind == "number" else answer
