"""A git server over HTTP on the loopback interface: git's own backend behind a small server."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class GitServer(ThreadingHTTPServer):
    """Serves the repositories of a folder. `leads` maps paths to redirect targets."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[str] = []
        """Host header and path of each request."""
        self.leads: dict[str, str] = {}

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("content-length", 0))))

    def log_message(self, *_: object) -> None:
        pass

    def _serve(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        self.server.asked.append(f"{self.headers['host']} {path}")
        for start, target in self.server.leads.items():
            if path.startswith(start):
                self.send_response(301)
                self.send_header("Location", f"{target}{self.path[len(start) :]}")
                self.end_headers()
                return
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("content-type", ""),
            "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
        }
        command = ["git", "http-backend"]
        done = subprocess.run(
            command, env=environment, input=body, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def git_server(folder: Path) -> Iterator[GitServer]:
    """Serve the repositories of a folder in a context."""
    server = GitServer(folder)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
