"""Writes the blocking client from the signatures and docstrings of the asynchronous client.

python -m tests.core.client.write_blocking
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from draftsman.client import asynchronous
from draftsman.client.loop_thread import LoopThread

SOURCE: Final = Path(asynchronous.__file__)
FILE: Final = SOURCE.with_name("blocking.py")
ITERABLE: Final = re.compile(r"Iterable\[\w+\]")
BLOCKING_FORMS: Final = (
    (re.compile(r"\basync (def|with|for)\b"), r"\1"),
    (re.compile(r"\bAsyncIterator\["), "Iterator["),
    (re.compile(r" \| AsyncIterable\[\w+\]"), ""),
)
"""Replacements in signatures and docstrings."""
HEADER: Final = '''"""Blocking client, for programs without an event loop.

Do not edit: `python -m tests.core.client.write_blocking` writes it.
"""

from draftsman.client.asynchronous import HOUR, Cursor
from draftsman.client.loop_thread import LoopThread
'''
DESCRIPTION: Final = "It is the blocking form of `Client`. Any thread may call its methods."


def blocking_client() -> str:
    """Return the module of the blocking client."""
    statements = ast.parse(SOURCE.read_text(encoding="utf-8")).body
    imports = [node for node in statements if isinstance(node, ast.ImportFrom)]
    classes = [node for node in statements if isinstance(node, ast.ClassDef)]
    docstring = f"{ast.get_docstring(classes[-1])}\n\n{DESCRIPTION}\n"
    methods = [
        _with_call(node)
        for client in classes
        for node in client.body
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    blocking = ast.ClassDef(
        name="BlockingClient",
        bases=[ast.Name("LoopThread")],
        keywords=[],
        body=[ast.Expr(ast.Constant(docstring)), *methods],
        decorator_list=[],
    )
    text = ast.unparse(ast.Module([*imports, blocking], type_ignores=[]))
    for pattern, replacement in BLOCKING_FORMS:
        text = pattern.sub(replacement, text)
    return _ruff("format", text=_ruff("check", "--fix-only", text=f"{HEADER}{text}\n"))


def _with_call(method: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
    """Return the method with its docstring, and a call instead of its body."""
    method.body[1:] = ast.parse(_call(method)).body
    return method


def _call(method: ast.AsyncFunctionDef) -> str:
    arguments = ", ".join(_arguments(method.args))
    call = f"self._client.{method.name}({arguments})"
    result = ast.unparse(method.returns or ast.Constant(None))
    if hasattr(LoopThread, f"_{method.name}"):
        return f"return self._{method.name}({arguments})"
    if result.startswith("AsyncIterator["):
        return f"return self._iterate({call})"
    return f"self._run({call})" if result == "None" else f"return self._run({call})"


def _arguments(parameters: ast.arguments) -> Iterator[str]:
    """Yield the arguments of the call; an iterable is read in the thread of the caller."""
    for parameter in parameters.args[1:]:
        annotation = ast.unparse(parameter.annotation or ast.Constant(None))
        name = parameter.arg
        yield f"list({name})" if ITERABLE.fullmatch(annotation) else name
    for parameter in parameters.kwonlyargs:
        yield f"{parameter.arg}={parameter.arg}"
    if parameters.kwarg is not None:
        yield f"**{parameters.kwarg.arg}"


def _ruff(*arguments: str, text: str) -> str:
    command = [
        sys.executable,
        "-m",
        "ruff",
        *arguments,
        "--quiet",
        "--stdin-filename",
        str(FILE),
        "-",
    ]
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return ended.stdout


if __name__ == "__main__":
    FILE.write_text(blocking_client(), encoding="utf-8")
