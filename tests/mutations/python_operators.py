"""Operators that change functions in Python, on their syntax tree."""

from __future__ import annotations

import ast
from typing import Final

from tests.mutations.mutant import Mutant, numbered, shortened

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
}
_OPPOSITES: Final = {"min": "max", "max": "min"}
_LOGS: Final = ("_log.",)


def mutants_of_functions(path: str, source: str) -> list[Mutant]:
    """Return the mutants of all functions of a file; messages to people stay as they are."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return numbered(finder.found)


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: str) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._names: list[str] = []
        self._offsets = [0]
        for line in source.splitlines(keepends=True):
            self._offsets.append(self._offsets[-1] + len(line))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Change the methods."""
        self._names.append(node.name)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self.visit(statement)
        self._names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Change the body, not the signature; constructors only keep their arguments."""
        self._names.append(node.name)
        if node.name != "__init__":
            self._visit_block(node.body)
        self._names.pop()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Change the body."""
        self.visit_FunctionDef(node)

    def visit_Module(self, node: ast.Module) -> None:
        """Change functions and classes."""
        for statement in node.body:
            if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.visit(statement)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave docstrings and logs."""
        if not isinstance(node.value, ast.Constant) and not self._is_log(node):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave messages."""

    def visit_If(self, node: ast.If) -> None:
        """Take a condition for true and for false."""
        self._decide(node.test)
        self._visit_condition(node.test)
        self._visit_block(node.body)
        self._visit_block(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        """Never enter a loop."""
        if not isinstance(node.test, ast.Constant):
            self._replace(node.test, f"False and ({self._text(node.test)})", "never")
        self._visit_condition(node.test)
        self._visit_block(node.body)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Take either value."""
        self._decide(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Take all."""
        for test in node.ifs:
            self._replace(test, f"True or ({self._text(test)})", "always")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Drop each operand."""
        for value in node.values:
            rest = [self._text(other) for other in node.values if other is not value]
            if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(value)):
                joined = (" and " if isinstance(node.op, ast.And) else " or ").join(rest)
                self._add(
                    f"drop {shortened(self._text(value))} of {shortened(self._text(node))}",
                    *self._span(node),
                    f"({joined})",
                )
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Move the limit of a comparison."""
        if len(node.ops) == 1 and (sign := _COMPARISONS.get(type(node.ops[0]))):
            left = self._text(node.left)
            right = self._text(node.comparators[0])
            self._replace(node, f"{left} {sign} {right}", f"{sign} in")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Drop keyword arguments, and swap min and max."""
        for keyword in node.keywords:
            if keyword.arg is not None and not self._is_log(node):
                start, end = self._span(keyword)
                comma = self._source.find(",", end)
                closing = self._source.find(")", end)
                end = comma + 1 if 0 <= comma < closing else end
                text = shortened(self._text(keyword))
                self._add(f"drop argument {text} of {self._text(node.func)}", start, end, "")
        if isinstance(node.func, ast.Name) and node.func.id in _OPPOSITES:
            self._replace(node.func, _OPPOSITES[node.func.id], f"{_OPPOSITES[node.func.id]} for")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Change sums."""
        if isinstance(node.op, ast.Add | ast.Sub):
            sign = "-" if isinstance(node.op, ast.Add) else "+"
            text = f"{self._text(node.left)} {sign} {self._text(node.right)}"
            self._replace(node, text, f"{sign} in")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Change numbers and truth values."""
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value), f"{not node.value} for")
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1), f"{node.value + 1} for")

    def visit_Try(self, node: ast.Try) -> None:
        """Drop each handler of an exception."""
        self._visit_block(node.body)
        for handler in node.handlers:
            if len(node.handlers) > 1 or node.finalbody:
                start, end = self._span(handler)
                begin = self._source.rindex("\n", 0, start)
                text = shortened(self._source[start:end].split("\n")[0])
                self._add(f"drop {text}", begin, end, "")
            self._visit_block(handler.body)
        self._visit_block(node.orelse)
        self._visit_block(node.finalbody)

    def _visit_condition(self, node: ast.expr) -> None:
        """Change the parts of a condition, which is itself taken for true and for false."""
        self.visit(node)

    def _visit_block(self, body: list[ast.stmt]) -> None:
        """Drop each statement, and change its parts."""
        for statement in body:
            if self._can_drop(statement):
                self._add(
                    f"drop {shortened(self._text(statement))}", *self._span(statement), "pass"
                )
            self.visit(statement)

    def _can_drop(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.Expr):
            return not isinstance(statement.value, ast.Constant) and not self._is_log(statement)
        if isinstance(statement, ast.Assign):
            return not any(isinstance(target, ast.Name) for target in statement.targets)
        if isinstance(statement, ast.Return):
            return statement.value is None or (
                isinstance(statement.value, ast.Constant) and statement.value.value is None
            )
        return isinstance(statement, ast.AugAssign | ast.Raise | ast.Continue | ast.Delete)

    def _decide(self, test: ast.expr) -> None:
        text = self._text(test)
        self._replace(test, f"(({text}) or True)", "always")
        self._replace(test, f"(({text}) and False)", "never")

    def _is_log(self, node: ast.AST) -> bool:
        return self._text(node).startswith(_LOGS)

    def _replace(self, node: ast.expr, text: str, what: str) -> None:
        self._add(f"{what} {shortened(self._text(node))}", *self._span(node), text)

    def _add(self, change: str, start: int, end: int, text: str) -> None:
        self.found.append(Mutant(self._path, ".".join(self._names), change, start, end, text))

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._source[start:end]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """Return the offsets of a node; sources of the claim path are ASCII."""
        at: ast.expr = node  # type: ignore[assignment]
        assert at.end_lineno is not None
        assert at.end_col_offset is not None
        return (
            self._offsets[at.lineno - 1] + at.col_offset,
            self._offsets[at.end_lineno - 1] + at.end_col_offset,
        )
