"""Programs for `execute_tool`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator

from draftsman.settings.job_types import LimitSettings
from draftsman.settings.network import Network


class ToolSettings(LimitSettings):
    """A program for `execute_tool`, and its limits."""

    command: tuple[str, ...] = Field(min_length=1)
    """Program and arguments, without a shell; `{python}` is this interpreter."""
    description: str = ""
    input_schema: JsonValue = True
    """JSON Schema of its standard input."""
    output_schema: JsonValue = None
    """JSON Schema of its output; default: any text."""
    exit_codes: dict[str, Literal["TRANSIENT_INFRA", "TRANSIENT_APP", "PERMANENT"]] = Field({})
    """Error classes of exit codes; default: sysexits.h, and TRANSIENT_INFRA for 1."""
    env: dict[str, str] = Field({})
    """Environment variables."""
    pass_env: tuple[str, ...] = ()
    """Names of inherited variables, besides the allowlist."""
    network: Network = Field(False)
    """Its network."""

    @field_validator("input_schema", "output_schema")
    @classmethod
    def _check_schema(cls, value: Any) -> Any:
        if not (value is None or isinstance(value, dict | bool)):
            raise ValueError("must be a JSON Schema: a table")
        return value

    @field_validator("exit_codes")
    @classmethod
    def _check_exit_codes(cls, value: dict[str, str]) -> dict[str, str]:
        for code in value:
            if not (code.isascii() and code.isdigit() and 1 <= int(code) <= 255):
                raise ValueError(f"{code!r} is not an exit code; use 1 to 255")
        return value
