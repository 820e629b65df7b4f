"""Forms of servers of the Model Context Protocol (MCP), as questions that people answer.

Their shape is that of `elicitation/create` in the MCP specification of 2025-11-25: a `message`, and
a `requestedSchema` whose properties are the fields.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from draftsman.agents.inputs import InputQuestion, stored_value
from draftsman.agents.program import Message

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
    message, questions = str(params.get("message") or ""), []
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
        items = field.get("items")
        return _values({**items, "type": "string"}) if isinstance(items, dict) else []
    listed = field.get("enum")
    if isinstance(listed, list):
        return [str(value) for value in listed]
    listed = field.get("oneOf") or field.get("anyOf")
    constants = listed if isinstance(listed, list) else []
    return [str(item["const"]) for item in constants if isinstance(item, dict) and "const" in item]


def _listed(answer: str, values: Sequence[str]) -> str:
    """Return the value of the form that an answer chose, as the form lists it; else the answer."""
    return next((value for value in values if stored_value(value) == answer), answer)


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
