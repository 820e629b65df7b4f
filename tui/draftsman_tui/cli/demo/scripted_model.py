"""A model with a script for coding agents: the APIs of OpenAI, Anthropic and Google, on 127.0.0.1.

The turn is chosen by the results of tools in the conversation, so that a resumed session continues.
A turn is `{"tool": NAME, "args": {…}}`, with `namespace` for a tool of an MCP server, `{"text": …}`
or, for Responses and Messages, `{"status": 402}`; of Messages also `{"calls": [CALL, …]}`, each of
which counts as a turn.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = dict[str, Any]


_ROUTED = json.dumps({"complexity_reasoning": "short", "complexity_score": 1})
"""The reply to the request by which Gemini CLI chooses its model."""


class ScriptedModel:
    """A running model: its URL, and the conversations that it was sent."""

    def __init__(self, script: Sequence[Turn]) -> None:
        self.script = list(script)
        self.conversations: list[list[dict[str, Any]]] = []
        self.url = ""

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        """Return the next turn of a conversation with so many results of tools."""
        return self.script[min(results, len(self.script) - 1)]

    def _next(self, conversation: list[dict[str, Any]], results: int, tools: Iterable[str]) -> Turn:
        """Return the next turn, whose tool the agent must have.

        Raises ValueError, and ModelError as the script says.
        """
        self.conversations.append(conversation)
        turn = self.turn(results, conversation)
        if "status" in turn:
            raise ModelError(turn["status"])
        used = {call["tool"] for call in turn.get("calls", [turn]) if "tool" in call}
        if unknown := used - set(tools):
            raise ValueError(f"the agent has no tools {unknown}")
        return turn

    def reply(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the chunks of the reply; raises ValueError for a request that is not streamed."""
        if not body.get("stream"):
            yield self._complete(body)
            return
        if not body.get("tools"):  # the title of the session
            yield _chunk({"role": "assistant", "content": "a title"})
            yield _chunk({}, "stop")
            return
        messages: list[dict[str, Any]] = body["messages"]
        results = sum(message["role"] == "tool" for message in messages)
        names = {tool["function"]["name"] for tool in body["tools"]}
        turn = self._next(messages, results, names)
        if "tool" in turn:
            function = {"name": turn["tool"], "arguments": json.dumps(turn["args"])}
            call = {"index": 0, "id": f"call_{results}", "type": "function", "function": function}
            yield _chunk({"role": "assistant", "content": None, "tool_calls": [call]})
            yield _chunk({}, "tool_calls")
        else:
            yield _chunk({"role": "assistant", "content": turn["text"]})
            yield _chunk({}, "stop")
        usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
        yield {**_chunk({}), "choices": [], "usage": usage}

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a completion in one piece, to an agent without tools."""
        messages: list[dict[str, Any]] = body["messages"]
        self.conversations.append(messages)
        turn = self.turn(0, messages)
        if "text" not in turn:
            raise ValueError("the request is not streamed")
        message = {"role": "assistant", "content": turn["text"]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
        return {**_chunk({}), "object": "chat.completion", "choices": [choice], "usage": usage}

    def generate(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the response to a stream of the Gemini API; raises ValueError, or ModelError."""
        contents: list[dict[str, Any]] = body["contents"]
        results = sum("functionResponse" in part for item in contents for part in item["parts"])
        declared = [item for tool in body["tools"] for item in tool["functionDeclarations"]]
        turn = self._next(contents, results, (item["name"] for item in declared))
        if "tool" in turn:
            yield _candidate({"functionCall": {"name": turn["tool"], "args": turn["args"]}})
        else:
            yield _candidate({"text": turn["text"]})

    def classify(self, _: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the response to a request without a stream: of a classifier of Gemini CLI."""
        yield _candidate({"text": _ROUTED})

    def respond(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events of a response; raises ValueError, or ModelError as the script says."""
        if not body.get("stream"):
            raise ValueError("the request is not streamed")
        items: list[dict[str, Any]] = body["input"]
        results = sum(str(item.get("type")).endswith("_call_output") for item in items)
        tools = [tool for holder in (body, *items) for tool in holder.get("tools", ())]
        names = {inner["name"] for tool in tools for inner in tool.get("tools", [tool])}
        later = (turn["tool"] for turn in self.script if "namespace" in turn)  # servers start
        turn = self._next(items, results, {*names, *later})
        if "tool" in turn:
            item: dict[str, Any] = {
                "type": "function_call",
                "id": f"fc_{results}",
                "call_id": f"call_{results}",
            }
            item |= {"name": turn["tool"], "arguments": json.dumps(turn["args"])}
            item |= {"namespace": turn["namespace"]} if "namespace" in turn else {}
        else:
            content = [{"type": "output_text", "text": turn["text"], "annotations": []}]
            item = {"type": "message", "id": f"m_{results}", "role": "assistant"}
            item |= {"content": content}
        usage = {"input_tokens": 1000, "output_tokens": 20, "total_tokens": 1020}
        response = {"id": f"resp_{results}", "object": "response", "model": body["model"]}
        yield {"type": "response.created", "response": response}
        yield {"type": "response.output_item.added", "output_index": 0, "item": item}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        done = response | {"status": "completed", "output": [item], "usage": usage}
        yield {"type": "response.completed", "response": done}

    def messages(self, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events of a message; raises ValueError for a request that is not streamed."""
        if not body.get("stream"):
            raise ValueError("the request is not streamed")
        results = sum(
            block.get("type") == "tool_result"
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        )
        names = {tool["name"] for tool in body["tools"]}
        turn = self._next(body["messages"], results, names)
        calls: list[Turn] = turn.get("calls", [turn] if "tool" in turn else [])
        start: dict[str, Any] = {
            "id": f"msg_{results}",
            "type": "message",
            "role": "assistant",
            "content": [],
        }
        start |= {"model": body["model"], "stop_reason": None, "stop_sequence": None}
        start["usage"] = {"input_tokens": 1000, "output_tokens": 1}
        yield {"type": "message_start", "message": start}
        for index, call in enumerate(calls):
            block = {"type": "tool_use", "id": f"toolu_{results}_{index}", "name": call["tool"]}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call["args"])}
            yield from _block(index, {**block, "input": {}}, delta)
        if "text" in turn:
            delta = {"type": "text_delta", "text": turn["text"]}
            yield from _block(len(calls), {"type": "text", "text": ""}, delta)
        end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}
        yield {"type": "message_stop"}


class ModelError(Exception):
    """An error of the provider, as the script says."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the provider answers {status}")
        self.status = status


def _block(index: int, block: dict[str, Any], delta: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _candidate(part: dict[str, Any]) -> dict[str, Any]:
    """Return a response of the Gemini API: ai.google.dev/api/generate-content."""
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020}
    content = {"role": "model", "parts": [part]}
    candidates = [{"content": content, "finishReason": "STOP", "index": 0}]
    return {"candidates": candidates, "usageMetadata": usage, "modelVersion": "fake-1"}


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    kind = "chat.completion.chunk"
    return {"id": "1", "object": kind, "created": 1, "model": "fake-1", "choices": [choice]}


@contextmanager
def scripted_model(
    script: Sequence[Turn], kind: type[ScriptedModel] = ScriptedModel
) -> Iterator[ScriptedModel]:
    """Serve a model for the block."""
    model = kind(script)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            """Answer a completion or a response; anything else is refused."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            path = self.path.partition("?")[0]
            _, colon, method = path.rpartition(":")  # of the Gemini API
            apis = {
                "/v1/chat/completions": model.reply,
                "/v1/messages": model.messages,
                "/v1/responses": model.respond,
                ":streamGenerateContent": model.generate,
                ":generateContent": model.classify,
            }
            name = f":{method}" if colon else path
            try:
                if name not in apis:
                    raise ValueError(f"unknown path {path}")
                chunks = apis[name](body)
                first = next(chunks)
            except ValueError as error:
                self.send_error(400, str(error))
                return
            except ModelError as error:
                self.send_error(error.status, str(error))
                return
            self.send_response(200)
            if name == ":generateContent" or first.get("object") == "chat.completion":
                data = json.dumps(first).encode()
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                return
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for chunk in itertools.chain([first], chunks):
                event = f"event: {chunk['type']}\n" if "type" in chunk else ""
                self.wfile.write(f"{event}data: {json.dumps(chunk)}\n\n".encode())
            if path == "/v1/chat/completions":
                self.wfile.write(b"data: [DONE]\n\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
