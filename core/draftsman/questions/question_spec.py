"""Questions as handlers ask them, validated before they are stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from draftsman import sizes
from draftsman.errors import UsageError
from draftsman.field_errors import matching
from draftsman.json_schemas.document_field import document
from draftsman.questions.answer_kind import NOUNS, AnswerKind, is_answer
from draftsman.questions.choice_matching import matching_key, normalize_value
from draftsman.questions.question import GATE_ENDS, OnChanges, OnDeny, OnExpire, QuestionKind
from draftsman.text import clean_fields, digest

MAX_CHOICES: Final = 500
MAX_CHOICE: Final = 150
"""Characters of a value or label; channels whose buttons are shorter list the choices, too."""
_EMOJI: Final = "must be the name of an emoji without colons, such as tada"


class Choice(BaseModel):
    """A choice of a question: `value` is the answer, `label` is displayed.

    The value is normalized (NFKC), so that an answer matches however it is typed.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    value: str = Field(min_length=1, max_length=MAX_CHOICE)
    label: str = Field("", max_length=MAX_CHOICE)
    description: str | None = Field(None, max_length=500)
    emoji: Annotated[str, matching(r"[a-z0-9_+'-]{1,100}", _EMOJI)] | None = None
    """Name of an emoji, with which a reaction to the message of the question chooses it."""

    @model_serializer(mode="wrap")
    def _without_emoji(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = serialize(self)
        if data.get("emoji") is None:
            data.pop("emoji", None)
        return data

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {"value": data}
        if not isinstance(data, dict):
            return data
        value = data.get("value", "")
        if not data.get("label"):
            data = {**data, "label": str(value).strip()[:MAX_CHOICE]}
        return {**data, "value": normalize_value(value)} if isinstance(value, str) else data


class QuestionSpec(BaseModel):
    """A question of a handler, validated before it is stored."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    key: str = Field(min_length=1, max_length=200)
    kind: QuestionKind = QuestionKind.INPUT
    text: str = Field(min_length=1, max_length=3000)
    choices: tuple[Choice, ...] = Field((), max_length=MAX_CHOICES)
    freeform: bool = False
    answer_kind: AnswerKind = AnswerKind.TEXT
    """What a free answer has to be; a person is chosen from the directory."""
    context: str | None = Field(None, max_length=20_000)
    approvers: tuple[Annotated[str, Field(max_length=sizes.PERSON)], ...] | None = Field(
        None, max_length=1000
    )
    """People and groups who may decide an approval; None: all with the role approver."""
    quorum: int = Field(1, ge=1, le=20)
    """Number of approvals required."""
    expires_in: float | None = Field(None, gt=0, le=86_400 * 366)
    """Seconds; None: the configured default."""
    never_expires: bool = False
    on_expire: OnExpire = OnExpire.EXPIRE
    default: str | None = Field(None, max_length=20_000)
    escalate_to: str | None = Field(None, min_length=1, max_length=200)
    """Group or person to escalate to; None: as configured."""
    on_deny: OnDeny = OnDeny.FAIL
    on_changes: OnChanges = OnChanges.REFUSE
    critical: bool = False
    """Whether it may interrupt people in their quiet hours, and page them."""
    action: Annotated[dict[str, Any], document("the action")] | None = None
    """The action to approve; it is part of the digest, so a changed action is asked again."""
    is_permission: bool = False
    """Whether it asks for permission to run a command: it is answered alone, always."""
    command_words: tuple[Annotated[str, Field(max_length=sizes.COMMAND_WORD)], ...] | None = Field(
        None, max_length=30
    )
    """Words of the plain command that the answer allows or denies, which a rule may allow."""

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)

    @field_validator("default")
    @classmethod
    def _of_choice(cls, default: str | None, info: ValidationInfo) -> str | None:
        """Return the value of the choice that is the default; free text is unchanged."""
        value = None if default is None else normalize_value(default)
        return value if value in [item.value for item in info.data.get("choices", ())] else default

    @model_validator(mode="after")
    def _check_combination(self) -> QuestionSpec:
        if self.escalate_to is not None and self.on_expire is not OnExpire.ESCALATE:
            raise ValueError("escalate_to requires on_expire='escalate'")
        choice_values = [choice.value for choice in self.choices]
        if len(choice_values) != len({matching_key(value) for value in choice_values}):
            raise ValueError("two choices have the same value; make them differ")
        emoji = [choice.emoji for choice in self.choices if choice.emoji]
        if len(emoji) != len(set(emoji)):
            raise ValueError("two choices have the same emoji; make them differ")
        if self.kind is QuestionKind.APPROVAL:
            if self.choices or self.freeform or self.on_expire not in GATE_ENDS:
                raise ValueError("an approval takes approve or deny, and can expire or escalate")
            return self
        self._check_answers(choice_values)
        return self

    def _check_answers(self, choice_values: Sequence[str]) -> None:
        if self.on_changes is not OnChanges.REFUSE:
            raise ValueError("on_changes is for an approval; a question takes an answer")
        if self.answer_kind is AnswerKind.PERSON:
            if self.choices or self.freeform or self.default is not None:
                raise ValueError("a question for a person takes no choices, default or free text")
            return
        if not self.choices and not self.freeform:
            raise ValueError("a question needs choices, or freeform=True, or both")
        if (self.on_expire is OnExpire.DEFAULT) != (self.default is not None):
            raise ValueError("a default requires on_expire='default', and the reverse")
        if self.default is not None and not self.freeform and self.default not in choice_values:
            raise ValueError(f"the default {self.default!r} is not among the choices")
        values = {*choice_values, *filter(None, [self.default])}
        if wrong := [value for value in values if not is_answer(self.answer_kind, value)]:
            noun, _ = NOUNS[self.answer_kind]
            raise ValueError(f"the choice or default {wrong[0]!r} is not {noun}")

    @property
    def digest(self) -> str:
        """Hash that an answer is bound to: a changed question with the same key is asked again."""
        is_text = self.answer_kind is AnswerKind.TEXT
        kind = {} if is_text else {"answer_kind": self.answer_kind}
        return digest(
            kind
            | {
                "kind": self.kind,
                "key": self.key,
                "text": self.text,
                "choices": sorted(choice.value for choice in self.choices),
                "freeform": self.freeform,
                "action": self.action,
            }
        )


def shown_choices(item: QuestionSpec, people: Collection[str]) -> Sequence[Choice]:
    """Return the choices that people see: for a person, the people of the directory.

    Raises UsageError for a directory without people, or with too many.
    """
    if item.answer_kind is not AnswerKind.PERSON:
        return item.choices
    if not 0 < len(people) <= MAX_CHOICES:
        raise UsageError(
            f"question {item.key!r} is for a person, of whom the directory has {len(people):,}; a"
            f" question shows 1 to {MAX_CHOICES}: give it choices instead"
        )
    return [Choice(value=name) for name in sorted(people)]
