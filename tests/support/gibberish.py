"""A plugin of pytest: the core speaks gibberish, so whatever reads its sentences breaks.

`python -m pytest -p tests.support.gibberish …` imports each module of the core with the texts for
people replaced: messages of errors, formats of log lines, hints' introductions, and the sentences
of the modules in SENTENCES. Placeholders, and everything that is data, stay, but no space separates
them from the text: a name that is searched for as a word is not found.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

from tests.support.core_errors import error_functions, errors_of_core

CORE: Final = "draftsman"
SENTENCES: Final = frozenset(
    {
        "questions.answer",
        "deliveries.message_text",
        "deliveries.question_text",
        "jobs.details.wait_reason",
        "field_errors",
        "deliveries.service.message_builder",
    }
)
"""Modules of the core in which every string of several words is a text for people."""
LEVELS: Final = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_PLACEHOLDER: Final = re.compile(r"%(?:\.?\d+)?[a-z]|%%|\{[^{}]*\}")
_SENTENCE: Final = re.compile(r"[A-Za-z]{2}")


_EXIT: Final = re.compile(r'(sys\.exit\(f?")([^"]*)(")')
"""The message with which a script in the code of the core ends."""


def _garbled_exit(message: re.Match[str]) -> str:
    return f"{message[1]}{garbled(message[2])}{message[3]}"


def _has_words(node: ast.expr) -> bool:
    texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return any(isinstance(text, str) and " " in text for text in texts)


def garbled(text: str) -> str:
    """Return a text without its words and punctuation: placeholders and inner spaces stay."""
    kept = []
    at = 0
    for place in _PLACEHOLDER.finditer(text):
        kept += [_nonsense(text[at : place.start()]), place[0]]
        at = place.end()
    return "".join([*kept, _nonsense(text[at:])])


def _nonsense(text: str) -> str:
    joined = re.sub(r"^ +| +$", lambda space: "q" * len(space[0]), text)
    return re.sub(r"[:;,.]", "~", re.sub(r"[A-Za-z]", "q", joined))


class Garbler(ast.NodeTransformer):
    """Replaces the texts of a module."""

    def __init__(self, module: str, errors: frozenset[str]) -> None:
        self._all = module in SENTENCES
        self._is_errors = module == "errors"
        self._errors = errors
        self._error_functions = error_functions()
        self._names: set[str] = set()
        self._helpers: set[str] = set()
        self.count = 0

    def text(self, node: ast.expr) -> ast.expr:
        """Return an expression with the literal text in it replaced."""
        match node:
            case ast.Constant(value=str(value)):
                self.count += 1
                return ast.copy_location(ast.Constant(garbled(value)), node)
            case ast.JoinedStr(values=values):
                node.values = [self.text(v) if isinstance(v, ast.Constant) else v for v in values]
            case ast.BinOp(left=left, right=right, op=ast.Add()):
                node.left = self.text(left)
                node.right = self.text(right)
            case ast.IfExp(body=body, orelse=orelse):
                node.body = self.text(body)
                node.orelse = self.text(orelse)
            case ast.Name(id=name):
                self._names.add(name)
            case ast.Call(func=ast.Name(id=name)):
                self._helpers.add(name)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Replace also texts returned by functions whose results are messages."""
        self.generic_visit(node)
        for function in ast.walk(node):
            if isinstance(function, ast.FunctionDef) and function.name in self._helpers:
                for part in ast.walk(function):
                    if isinstance(part, ast.Return) and part.value is not None and not self._all:
                        part.value = self.text(part.value)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if self._errors & {base.id for base in node.bases if isinstance(base, ast.Name)}:
            self._errors |= {node.name}
        first = node.body[0]
        if self._is_errors and isinstance(first, ast.Expr):  # a docstring is a default message
            first.value = self.text(first.value)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = f"{node.func.value.id}.{node.func.attr}"
        if name == "re.compile":
            return node
        logs = name.startswith("_log.") and name.partition(".")[2] in LEVELS
        if node.args and (name in self._errors or logs):
            node.args[0] = self.text(node.args[0])
        if name in self._error_functions:
            node.args = [self.text(part) if _has_words(part) else part for part in node.args]
        for keyword in node.keywords:
            if keyword.arg == "problem":
                keyword.value = self.text(keyword.value)
            if keyword.arg == "lead" and isinstance(keyword.value, ast.Constant):
                keyword.value = self.text(keyword.value) if keyword.value.value else keyword.value
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        if self._all:
            self.text(node)
        for value in node.values:
            if isinstance(value, ast.FormattedValue):  # never its format
                value.value = self.visit(value.value)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and _EXIT.search(node.value):  # a script
            return ast.copy_location(ast.Constant(_EXIT.sub(_garbled_exit, node.value)), node)
        is_text = self._all and isinstance(node.value, str) and " " in node.value
        return self.text(node) if is_text and _SENTENCE.search(str(node.value)) else node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        """Replace also texts assigned to a variable that is used as a message."""
        self._names, outer = set(), self._names
        changed = self.generic_visit(node)
        for part in ast.walk(node):
            if isinstance(part, ast.Assign) and not self._all:
                names = {target.id for target in part.targets if isinstance(target, ast.Name)}
                if names & self._names and isinstance(part.value, ast.Constant | ast.JoinedStr):
                    part.value = self.text(part.value)
        self._names = outer
        return changed


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compile the garbled source without a cache."""
        tree = ast.parse(self.get_data(self.path), self.path)
        garbler = Garbler(fullname.removeprefix(f"{CORE}."), errors_of_core())
        garbler.visit(tree)
        COUNTS[fullname] = garbler.count
        return compile(tree, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != CORE and not fullname.startswith(f"{CORE}."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader) and spec.origin:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


COUNTS: Final[dict[str, int]] = {}
"""Number of replaced texts in each imported module."""
sys.meta_path.insert(0, _Finder())


def pytest_terminal_summary(terminalreporter: object) -> None:
    """Print the number of replaced texts, for the test that started this run."""
    write = getattr(terminalreporter, "write_line")  # noqa: B009 - of pytest's private type
    write(f"garbled texts: {sum(COUNTS.values())}")
