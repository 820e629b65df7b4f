"""References to secrets."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import model_validator

from draftsman.field_errors import matching
from draftsman.settings.section import Section, UserPath

_Variable = Annotated[
    str,
    matching(
        r"[A-Za-z_][A-Za-z0-9_]*",
        "must be the name of a variable such as SLACK_BOT_TOKEN, not its value",
    ),
]


class SecretSettings(Section):
    """A reference to a secret in an environment variable or a file."""

    env: _Variable | None = None
    file: UserPath | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_value(cls, data: Any) -> Any:
        if isinstance(data, str):
            raise ValueError('must be a reference, { env = "NAME" } or { file = "PATH" }')
        return data

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("specify either env, the name of a variable, or file, a path")
        return self
