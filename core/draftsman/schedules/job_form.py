"""What people start by a form: a template, or a job type that workers have described. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from draftsman.job_types.published.description import PublishedType
from draftsman.json_schemas.parameter_schema import ParameterSchema
from draftsman.schedules.template import Template

VERSION: Final = 12
"""Characters of the version of a description in a name."""


@dataclass(frozen=True, slots=True)
class JobForm:
    """A version of a template, or a described job type, with the parameters that people give."""

    of: Template | PublishedType
    inputs: ParameterSchema

    @property
    def label(self) -> str:
        """Its name for people."""
        return self.of.name

    @property
    def path(self) -> str:
        """Its name, also where a template and a type have the same: `type/report:weekly`."""
        kind = "template" if isinstance(self.of, Template) else "type"
        return f"{kind}/{self.of.name}"

    @property
    def version(self) -> str:
        """The name of this version alone: `template/bump@3`, `type/report:weekly@1a2b3c4d5e6f`."""
        version = self.of.version
        return f"{self.path}@{version if isinstance(version, int) else version[:VERSION]}"

    @property
    def description(self) -> str:
        """What it does."""
        if isinstance(self.of, Template):
            return "" if self.of.definition is None else self.of.definition.description
        return self.of.description

    @property
    def command(self) -> str:
        """The command that runs it in a terminal."""
        is_template = isinstance(self.of, Template)
        return f"draftsman {'templates run' if is_template else 'submit --type'} {self.of.name}"


def of_type(type: PublishedType) -> JobForm:
    """Return the form of a type."""
    return JobForm(type, type.inputs)
