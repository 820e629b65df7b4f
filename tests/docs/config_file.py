"""Writes config/draftsman.toml from the models of the settings.

python -m tests.docs.config_file

A table has the docstring of its field, else that of its class; a key has the docstring of its field
and the bounds of its value. The value is the first of the field's `examples`, else its default. A
key is explained where it occurs first; later tables have only the keys of their example.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from draftsman.settings import channel_tables, settings_model
from draftsman.settings.secret import SecretSettings
from draftsman.settings.section import Section

FILE: Final = Path(__file__).resolve().parents[2] / "config" / "draftsman.toml"
WIDTH: Final = 98
NOT_A_BOUND: Final = 1e8
"""Bounds from this number on protect a type of the database, and tell people nothing."""
COMPOSED: Final = channel_tables.__name__
"""Module of models without a source, which are composed of those of packages."""
HEAD: Final = """\
# Every key of draftsman, with its default commented out: "#key = value" is a setting, "# text" is
# not. Where the default is "unset", the value shown is an example; so are the names and values of
# tables that are commented out. A secret is given by its variable or its file, { env = "NAME" } or
# { file = "PATH" }.
#
# Put it at ~/.config/draftsman/draftsman.toml, at /etc/draftsman/draftsman.toml, or anywhere and
# name it with --config or DRAFTSMAN_CONFIG. It is never read from the current directory, because
# a cloned repository must not change the configuration.
#
# DRAFTSMAN_* variables override this file, with __ between the levels:
#     DRAFTSMAN_WORKER__SLOTS=4  DRAFTSMAN_LOG__LEVEL=debug  DRAFTSMAN_WORKER__QUEUES='["default"]'
# Put secrets there, not in a file that other users can read. An unknown name with __ is refused,
# and so is a misspelled DRAFTSMAN_DATABASE_URL, _DATA_DIR or _CONFIG while the correct variable is
# unset. Processes and `draftsman doctor` warn of other unknown names.
#
# A page such as docs/limits.md is shown by: draftsman help --page limits
"""


def config_text() -> str:
    """Return the text of the file."""
    writer = _Writer()
    writer.write_table("", settings_model(), {}, heading="")
    return HEAD + "\n".join(writer.lines) + "\n"


def sections_in(annotation: Any) -> list[type[Section]]:
    """Return the models inside an annotation such as `dict[str, TypeSettings]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for inner in get_args(annotation) for section in sections_in(inner)]


def example_of(field: FieldInfo) -> Any:
    """Return the value that the file shows: the first example, else the default."""
    if field.examples:
        return field.examples[0]
    return None if field.is_required() else field.get_default(call_default_factory=True)


def declaring_class(model: type[BaseModel], name: str) -> type:
    """Return the class of the model's bases that declares a field, if it has a source."""
    bases = [base for base in model.__mro__ if name in inspect.get_annotations(base)]
    return next((base for base in bases if base.__module__ != COMPOSED), bases[0])


@cache
def docstrings(declaring: type) -> Mapping[str, str]:
    """Return the docstring of each field that a class declares."""
    if declaring.__module__ == COMPOSED:
        return {}
    [class_node] = ast.parse(textwrap.dedent(inspect.getsource(declaring))).body
    assert isinstance(class_node, ast.ClassDef)
    texts = {}
    for statement, following in pairwise(class_node.body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts


def bounds_text(annotation: Any, metadata: Iterable[Any]) -> str:
    """Return the sentence about the bounds of a number; empty without bounds."""
    lower: float | None = None
    upper: float | None = None
    for bound in _bounds(annotation, metadata):
        if isinstance(bound, Ge):
            lower = _number(bound.ge)
        elif _number(bound.le) < NOT_A_BOUND:
            upper = _number(bound.le)
    if upper is not None:
        return f"At most {upper:.10g}." if lower is None else f"{lower:.10g} to {upper:.10g}."
    return f"At least {lower:.10g}." if lower is not None and lower > 1 else ""


def _number(bound: Any) -> float:
    return float(bound)


def _bounds(annotation: Any, metadata: Iterable[Any]) -> Iterator[Ge | Le]:
    """Yield the bounds of a number, also of one that may be unset."""
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from _bounds(None, item.metadata)
        elif isinstance(item, Ge | Le):
            yield item
    if get_origin(annotation) not in (tuple, dict):
        for inner in get_args(annotation):
            yield from _bounds(inner, getattr(inner, "__metadata__", ()))


def _is_named(field: FieldInfo) -> bool:
    """Return whether the field has tables by name, or several values."""
    return get_origin(field.annotation) is dict


class _Writer:
    """The lines of the file, and which keys they have explained."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._explained: set[tuple[type, str]] = set()

    def write_table(
        self,
        path: str,
        model: type[BaseModel],
        example: Mapping[str, Any],
        *,
        heading: str,
        header: str = "",
        elsewhere: frozenset[str] = frozenset(),
    ) -> None:
        """Write the keys of a table, then the tables in it.

        `elsewhere` are the keys that other tables of the same example explain.
        """
        names = [name for name in model.model_fields if name in example or name not in elsewhere]
        fresh = [name for name in names if self._is_fresh(model, name)]
        repeated = [name for name in names if name not in fresh and name in example]
        is_single = not header.startswith("#")
        values: list[str] = []
        tables: list[str] = []
        for name in [*fresh, *repeated]:
            field = model.model_fields[name]
            (tables if _is_table(field, is_single=is_single) else values).append(name)
        if heading:
            self._blank()
            self._comment(heading)
        if values and header:
            self.lines.append(header)
        for name in values:
            field = model.model_fields[name]
            if name in fresh:
                self._explain(model, name, separate=not path)
            elif fresh and name == repeated[0]:
                self._comment("As above.")
            self.lines.append(f"#{_key(name)} = {_value(example.get(name, example_of(field)))}")
        for name in tables:
            self._write_inner(path, model, name, example, is_single=is_single)

    def _write_inner(
        self,
        path: str,
        model: type[BaseModel],
        name: str,
        example: Mapping[str, Any],
        *,
        is_single: bool,
    ) -> None:
        field = model.model_fields[name]
        inner = f"{path}.{name}" if path else name
        fresh = self._is_fresh(model, name)
        text = docstrings(declaring_class(model, name)).get(name, "") if fresh else ""
        self._explained.add((declaring_class(model, name), name))
        value = example.get(name, example_of(field))
        sections = sections_in(field.annotation)
        if not sections:
            self._write_values(inner, value, text)
        elif get_origin(field.annotation) is tuple:
            self._write_array(inner, sections[0], value, text)
        elif _is_named(field):
            self._write_named(inner, sections[0], value, text or class_text(sections[0]))
        else:
            is_optional = type(None) in get_args(field.annotation)
            mark = "#" if is_optional or not is_single else ""
            heading = text or class_text(sections[0])
            header = f"{mark}[{inner}]"
            self.write_table(inner, sections[0], {}, heading=heading, header=header)

    def _write_values(self, path: str, values: Mapping[str, Any], heading: str) -> None:
        """Write a table whose keys are names."""
        self._blank()
        self._comment(heading)
        self.lines.append(f"[{path}]")
        self.lines += [f"#{_key(name)} = {_value(value)}" for name, value in values.items()]

    def _write_named(
        self, path: str, model: type[Section], tables: Mapping[str, Any], heading: str
    ) -> None:
        """Write an example of each table of a model whose tables have names."""
        for name, example in tables.items():
            others = (other for key, other in tables.items() if key != name)
            self.write_table(
                f"{path}.{_key(name)}",
                model.for_table(example),
                example,
                heading=heading,
                header=f"#[{path}.{_key(name)}]",
                elsewhere=frozenset().union(*others),
            )
            heading = ""
            self._blank()

    def _write_array(
        self, path: str, model: type[Section], items: Iterable[Any], heading: str
    ) -> None:
        """Write a table for each item of a list."""
        if not self.lines[-1].startswith("# "):
            self._blank()
        for item in items:
            values = item.model_dump(exclude_defaults=True) if isinstance(item, Section) else item
            if heading:
                self._comment(heading)
            self.write_table(path, model, values, heading="", header=f"#[[{path}]]")
            heading = ""

    def _is_fresh(self, model: type[BaseModel], name: str) -> bool:
        return (declaring_class(model, name), name) not in self._explained

    def _explain(self, model: type[BaseModel], name: str, *, separate: bool) -> None:
        declaring = declaring_class(model, name)
        self._explained.add((declaring, name))
        field = model.model_fields[name]
        text = docstrings(declaring)[name]
        bounds = bounds_text(field.annotation, field.metadata)
        if separate:
            self._blank()
        self._comment(f"{text} {bounds}".rstrip())

    def _comment(self, text: str) -> None:
        lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
        self.lines += [f"# {line}" for line in lines]

    def _blank(self) -> None:
        if not self.lines or self.lines[-1]:
            self.lines.append("")


def class_text(model: type[Section]) -> str:
    """Return the docstring of a section as a paragraph."""
    return " ".join((model.__doc__ or "").split())


def _is_table(field: FieldInfo, *, is_single: bool) -> bool:
    """Return whether the value of a field is a table or several, not a value on its line."""
    sections = sections_in(field.annotation)
    if sections and sections[0] is not SecretSettings:
        is_list = get_origin(field.annotation) is tuple
        return is_list or _is_named(field) or not field.examples
    return _is_named(field) and not sections and is_single


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    """Return a value in TOML."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case date():
            return value.isoformat()
        case str() | Path():
            return json.dumps(str(value), ensure_ascii=False)
        case Mapping():
            pairs = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"give the field an example: there is no {type(value).__name__} in TOML")


if __name__ == "__main__":
    FILE.write_text(config_text(), encoding="utf-8")
