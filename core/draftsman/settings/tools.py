"""Programs for `execute_tool`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator

from draftsman.settings.job_types import LimitSettings
from draftsman.settings.network import Network


class ToolSettings(LimitSettings):
    """Programs that execute_tool may run, with the input as JSON on their standard input.

    Their variable TOOL_INVOCATION_ID stays the same when a run is repeated. They have the limits of
    [types], too: call_timeout is the maximum running time, by default 120.
    """

    command: tuple[str, ...] = Field(min_length=1, examples=[["wc", "-w"]])
    """Program and arguments; {python} is the interpreter that runs draftsman."""
    description: str = Field("", examples=["Counts words"])
    """Description of the tool."""
    input_schema: JsonValue = True
    """JSON Schema of its input. true: any input."""
    output_schema: JsonValue = Field(None, examples=[{"type": "integer"}])
    """JSON Schema of its output, which must be JSON. Unset: any text."""
    exit_codes: dict[str, Literal["TRANSIENT_INFRA", "TRANSIENT_APP", "PERMANENT"]] = Field(
        {}, examples=[{"3": "PERMANENT"}]
    )
    """Error classes of its exit codes: TRANSIENT_INFRA (default), TRANSIENT_APP, PERMANENT;
    sysexits.h applies."""
    env: dict[str, str] = Field({})
    """Variables set for it."""
    pass_env: tuple[str, ...] = ()
    """Names of variables that it inherits in addition to the standard variables."""
    network: Network = Field(False)
    """Its network: false; true, that of the host; or a list of groups and hosts, such as
    ["mirrors", "git.example:443"] (docs/sandbox.md)."""

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
