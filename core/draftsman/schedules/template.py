"""Templates: requests with parameters, which a JSON Schema describes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draftsman import field_errors
from draftsman.field_errors import matching
from draftsman.jobs.requests.invocation import Invocation, TemplateRef
from draftsman.json_schemas.parameter_schema import ParameterSchema
from draftsman.schedules.names import NAME, NAMES
from draftsman.text import REQUEST_LIMIT, check_size, clean_fields

_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER: Final = re.compile(r"\{(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)\}")
"""`{name}` stands for a value, `{{name}}` for the text `{name}`."""
_NO_REQUEST: Final = frozenset({"description", "parameters"})

Name = Annotated[str, matching(NAME.pattern, NAMES)]


class TemplateDefinition(BaseModel):
    """The fields of a request, whose texts may contain parameters in braces."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    description: str = Field("", max_length=500)
    parameters: dict[str, Any] = Field(default_factory=dict)
    """JSON Schema of the parameters: an object, whose properties are the parameters."""
    type: str | None = None
    agent: str | None = None
    repo: str | None = None
    ref: str | None = None
    mode: str | None = None
    queue: str | None = None
    priority: int | None = None
    subject_key: str | None = None
    title: str | None = None
    text: str | None = None
    url: str | None = None
    payload: dict[str, Any] | None = None
    overrides: dict[str, Any] | None = None
    skills: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    notify: tuple[str, ...] | None = None
    max_attempts: int | None = None
    max_retries: int | None = None
    on_lost: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _cleaned(cls, data: Any) -> Any:
        return clean_fields(data)

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        check_size(self.as_data(), REQUEST_LIMIT, "the template")
        if self.parameters.get("type", "object") != "object":
            raise ValueError('parameters: the schema must have "type": "object"')
        properties = self.parameters.get("properties", {})
        if not isinstance(properties, dict):
            raise ValueError("parameters: properties must be an object")
        for name in properties:
            if _PARAMETER.fullmatch(name) is None:
                raise ValueError(
                    f"parameters: {name[:60]!r} is not a name; allowed: letters, digits and _"
                )
        for field, value in self.request_fields.items():
            for name in _placeholders(value):
                if name not in properties:
                    names = ", ".join(properties) or "none"
                    raise ValueError(
                        f"{field}: unknown parameter {{{name}}}; parameters: {names}; for the text"
                        f" itself write {{{{{name}}}}}"
                    )
        return self

    @property
    def request_fields(self) -> dict[str, Any]:
        """The fields of the request, before the parameters are replaced."""
        fields = self.model_dump(exclude_none=True, exclude=set(_NO_REQUEST))
        return {name: value for name, value in fields.items() if value not in ("", (), {})}

    @property
    def literal_fields(self) -> dict[str, Any]:
        """The fields of the request that contain no parameter."""
        return {
            name: _render(value, {})
            for name, value in self.request_fields.items()
            if next(_placeholders(value), None) is None
        }

    @property
    def inputs(self) -> ParameterSchema:
        """The parameters."""
        return ParameterSchema(self.parameters)

    @property
    def fixed(self) -> set[str]:
        """The keys of the payload, and the parameters that its texts have."""
        payload = self.payload or {}
        return {*payload, *_placeholders(payload)}

    def as_data(self) -> dict[str, Any]:
        """Return the definition as JSON data, without empty fields."""
        data = self.model_dump(mode="json", exclude_none=True)
        return {name: value for name, value in data.items() if value not in ("", [], {})}

    def render(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of the request with the values of the parameters.

        A text that is only a placeholder becomes the value itself; without a value, the field is
        left out.
        """
        rendered = {name: _render(value, params) for name, value in self.request_fields.items()}
        return {
            name: str(value)
            if isinstance(self.__dict__[name], str) and not isinstance(value, str)
            else value
            for name, value in rendered.items()
            if value is not None
        }


@dataclass(frozen=True, slots=True)
class Template:
    """A version of a template; `definition` is None if it removed the template."""

    name: str
    version: int
    definition: TemplateDefinition | None
    created_by: str
    created_at: datetime

    @property
    def ref(self) -> TemplateRef:
        """The reference that its jobs keep."""
        return TemplateRef(name=self.name, version=self.version)


def define(fields: Mapping[str, Any]) -> TemplateDefinition:
    """Build a definition; raises FieldError, also for a field that no request may have."""
    try:
        definition = TemplateDefinition(**fields)
        Invocation(**definition.literal_fields)
    except ValidationError as error:
        raise field_errors.field_error(
            error, default="template", allowed=TemplateDefinition.model_fields
        ) from None
    return definition


def _placeholders(value: Any) -> Iterator[str]:
    """Yield the parameters in a text, or in the texts of an object or list."""
    if isinstance(value, str):
        yield from (
            match[1] for match in _PLACEHOLDER.finditer(value) if not match[1].startswith("{")
        )
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _placeholders(key)
            yield from _placeholders(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _placeholders(item)


def _render(value: Any, params: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        whole = _PLACEHOLDER.fullmatch(value)
        if whole is not None and not whole[1].startswith("{"):
            return params.get(whole[1])
        return _PLACEHOLDER.sub(lambda match: _replacement(match[1], params), value)
    if isinstance(value, dict):
        return {str(_render(key, params)): _render(item, params) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [item for item in (_render(item, params) for item in value) if item is not None]
    return value


def _replacement(name: str, params: Mapping[str, Any]) -> str:
    if name.startswith("{"):
        return name
    value = params.get(name, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
