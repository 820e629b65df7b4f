"""Connection to an agent that speaks the Agent Client Protocol: JSON-RPC lines over its pipes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from draftsman.agents.agent_client import AgentClient

METHOD_NOT_FOUND: Final = -32601
AUTHENTICATION_REQUIRED: Final = -32000
MAX_LINE: Final = 32 * 1024 * 1024
"""Maximum bytes of a line; it may have the whole history of a session."""
IDLE: Final = 3600.0
"""Seconds of a wait for a line, after which it is repeated."""
NOISE: Final = 500
"""Characters logged of a line that is not a message."""

Message = dict[str, Any]


class AgentFailure(Exception):
    """An error for the worker: its class, its code and its text."""

    def __init__(self, error_class: str, code: str, message: str) -> None:
        super().__init__(message)
        self.error_class, self.code = error_class, code


class AcpConnection:
    """The agent's process. `on_update` gets notifications, `on_request` answers its requests.

    `on_request` returns None for a method that it does not know.
    """

    def __init__(
        self,
        client: AgentClient,
        command: Sequence[str],
        cwd: str,
        environment: Mapping[str, str],
        on_update: Callable[[Message], None],
        on_request: Callable[[str, Message], Message | None],
    ) -> None:
        self._client = client
        self._numbers = itertools.count(1)
        self._unread = b""
        self._on_update, self._on_request = on_update, on_request
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=cwd,
                env=dict(environment),
            )
        except OSError as error:
            text = f"cannot start {command[0]}: {error.strerror}"
            raise AgentFailure("PERMANENT", "command_not_found", text) from None

    def request(self, method: str, **params: Any) -> Message:
        """Send a request and return its result; handle the agent's messages meanwhile.

        Raises AgentFailure for an error, and for an agent that exits.
        """
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" in message:
                self._handle(message)
            elif message.get("id") == number:
                if (error := message.get("error")) is not None:
                    raise _failure(method, error)
                result = message.get("result")
                return result if isinstance(result, dict) else {}

    def close(self) -> None:
        """End the agent."""
        self._process.kill()
        self._process.wait()

    def _handle(self, message: Message) -> None:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        method = str(message["method"])
        if "id" not in message:
            if method == "session/update":
                self._on_update(params)
            return
        result = self._on_request(method, params)
        if result is None:
            error = {"code": METHOD_NOT_FOUND, "message": f"unknown method {method}"}
            self._send({"id": message["id"], "error": error})
        else:
            self._send({"id": message["id"], "result": result})

    def _send(self, message: Message) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101 - a pipe
        try:
            stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            stdin.flush()
        except OSError:
            raise self._exited() from None

    def _receive(self) -> Message:
        """Return the next message; other output is logged."""
        while True:
            while b"\n" not in self._unread:
                self._read()
            line, _, self._unread = self._unread.partition(b"\n")
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
                return message
            if line.strip():
                self._client.send("log", text=line.decode(errors="replace")[:NOISE])

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101 - a pipe
        if not self._client.wait(stdout.fileno(), IDLE):
            return
        chunk = os.read(stdout.fileno(), 1 << 16)
        if not chunk:
            raise self._exited()
        self._unread += chunk
        if len(self._unread) > MAX_LINE and b"\n" not in self._unread:
            text = f"the agent wrote a line of more than {MAX_LINE:,} bytes"
            raise AgentFailure("INVALID_OUTPUT", "protocol", text)

    def _exited(self) -> AgentFailure:
        try:
            code: int | str = self._process.wait(5)
        except subprocess.TimeoutExpired:
            code = "unknown"
        text = f"the agent exited with code {code} before the end of its turn"
        return AgentFailure("TRANSIENT_APP", "agent_exited", text)


def _failure(method: str, error: Any) -> AgentFailure:
    code, text = (error.get("code"), error.get("message")) if isinstance(error, dict) else (0, "")
    detail = f"{method}: {text or 'error'} ({code})"
    if code == AUTHENTICATION_REQUIRED:
        hint = "pass its key with pass_env, or configure its provider"
        return AgentFailure("PERMANENT", "authentication", f"the agent has no login: {hint}")
    return AgentFailure("TRANSIENT_APP", "agent_error", detail[:2000])
