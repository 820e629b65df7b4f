"""Connection to an agent that speaks JSON-RPC: requests in both directions, and notifications."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from draftsman.agents.agent_client import AgentClient
from draftsman.agents.program import AgentFailure, AgentProgram, Message

METHOD_NOT_FOUND: Final = -32601
AUTHENTICATION_REQUIRED: Final = -32000


class RpcConnection:
    """The agent's process. `on_notice` gets notifications, `on_request` answers its requests.

    Both get method and parameters; `on_request` returns None for a method that it does not know.
    `header` has the members of each message besides those of requests and replies.
    """

    def __init__(
        self,
        client: AgentClient,
        command: Sequence[str],
        cwd: str,
        on_notice: Callable[[str, Message], None],
        on_request: Callable[[str, Message], Message | None],
        header: Mapping[str, str],
    ) -> None:
        self._client = client
        self._numbers = itertools.count(1)
        self._on_notice = on_notice
        self._on_request = on_request
        self._header = dict(header)
        self._program = AgentProgram(client, command, cwd)

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

    def notify(self, method: str) -> None:
        """Send a notification."""
        self._send({"method": method})

    def handle_next(self) -> None:
        """Wait for a message of the agent, and handle it."""
        message = self._receive()
        if "method" in message:
            self._handle(message)

    def close(self) -> None:
        """End the agent."""
        self._program.close()

    def _handle(self, message: Message) -> None:
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        method = str(message["method"])
        if "id" not in message:
            self._on_notice(method, params)
            return
        result = self._on_request(method, params)
        if result is None:
            error = {"code": METHOD_NOT_FOUND, "message": f"unknown method {method}"}
            self._send({"id": message["id"], "error": error})
        else:
            self._send({"id": message["id"], "result": result})

    def _send(self, message: Message) -> None:
        self._program.send(self._header | message)

    def _receive(self) -> Message:
        """Return the next message; other objects are logged."""
        while True:
            message = self._program.receive()
            if self._header.items() <= message.items() and ("method" in message or "id" in message):
                return message
            self._client.send("log", text=str(message)[:500])


def _with_details(text: str, error: Any) -> str:
    """Return the text of an error with the details in its data, which some agents have."""
    data = error.get("data") if isinstance(error, dict) else None
    for name in ("details", "message", "error"):
        if isinstance(data, dict) and isinstance(data.get(name), str):
            data = data[name]
    return f"{text}: {data}" if isinstance(data, str) and data and data != text else text


def _failure(method: str, error: Any) -> AgentFailure:
    code, text = (error.get("code"), error.get("message")) if isinstance(error, dict) else (0, "")
    detail = f"{method}: {_with_details(str(text or 'error'), error)} ({code})"
    if code == AUTHENTICATION_REQUIRED:
        hint = "pass its key with pass_env, or configure its provider"
        return AgentFailure("PERMANENT", "authentication", f"the agent has no login: {hint}")
    return AgentFailure("TRANSIENT_APP", "agent_error", detail[:2000])
