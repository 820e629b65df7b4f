"""A model with a script for Gemini CLI: generateContent of the Gemini API on 127.0.0.1.

The shapes follow ai.google.dev/api/generate-content. The turn is chosen by the responses of
functions in the conversation, as in `scripted_model`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.fake_model import FakeModel

Message = dict[str, Any]
ROUTED = {"text": json.dumps({"complexity_reasoning": "short", "complexity_score": 1})}
"""The reply to the request by which the agent chooses its model."""


def reply(model: FakeModel, body: Message) -> Message:
    """Return the reply; raises ValueError for a function that the agent does not have."""
    contents = body["contents"]
    model.conversations.append(contents)
    results = sum("functionResponse" in part for item in contents for part in item["parts"])
    turn = model.turn(results, contents)
    if "tool" in turn:
        declared = [item for tool in body["tools"] for item in tool["functionDeclarations"]]
        if turn["tool"] not in {item["name"] for item in declared}:
            raise ValueError(f"the agent has no tool {turn['tool']}")
        part = {"functionCall": {"name": turn["tool"], "args": turn["args"]}}
    else:
        part = {"text": turn["text"]}
    return candidate(part)


def candidate(part: Message) -> Message:
    """Return a response with a single part."""
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
    }


@contextmanager
def gemini_model(script: Sequence[Message]) -> Iterator[FakeModel]:
    """Serve a model for the block."""
    model = FakeModel(script)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            """Answer a request; one without a stream is of the agent's own classifiers."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            streamed = ":streamGenerateContent" in self.path
            if self.headers["x-goog-api-key"] is None:
                self.send_error(401)
                return
            try:
                data = json.dumps(reply(model, body) if streamed else candidate(ROUTED))
            except ValueError as error:
                self.send_error(400, str(error))
                return
            content = (f"data: {data}\r\n\r\n" if streamed else data).encode()
            self.send_response(200)
            kind = "text/event-stream" if streamed else "application/json"
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
