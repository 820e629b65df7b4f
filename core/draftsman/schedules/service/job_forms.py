"""The forms of templates and described job types, and the requests that they make."""

from __future__ import annotations

from draftsman.errors import AmbiguousName, NotFound, UsageError
from draftsman.job_types.published.service import PublishedTypes
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.invocation import Invocation
from draftsman.jobs.requests.service.request_checks import RequestChecks
from draftsman.schedules.job_form import JobForm, of_type
from draftsman.schedules.service.templates import Templates
from draftsman.schedules.template import Template


class JobForms:
    """The forms that there are, and the requests that they make."""

    def __init__(
        self, *, templates: Templates, published: PublishedTypes, checks: RequestChecks
    ) -> None:
        self._templates = templates
        self._published = published
        self._checks = checks

    async def all(self) -> list[JobForm]:
        """Return the forms of templates and described types, by name."""
        forms = [
            await self.of_template(template)
            for template in await self._templates.all()
            if template.definition is not None
        ]
        return [*forms, *map(of_type, await self._published.all())]

    async def find(self, name: str) -> JobForm:
        """Return the form of a name: `bump`, `bump@3`, `template/bump`, `type/report:weekly`.

        Raises NotFound, and UsageError for a name that is both a template and a type.
        """
        kind, _, rest = name.rpartition("/")
        if kind not in ("", "template", "type"):
            raise UsageError(f"{name[:80]!r}: write NAME, template/NAME or type/NAME")
        base = rest.partition("@")[0]
        types = {} if kind == "template" else await self._published.of([base])
        if kind == "type":
            return of_type(types.get(base) or await self._published.get(base))
        is_type = base in types and "@" not in rest
        try:
            template = await self._templates.get(rest)
        except NotFound:
            if is_type:
                return of_type(types[base])
            raise
        if is_type:
            raise AmbiguousName(
                f"{base} is a template and a job type: write template/{base} or type/{base}"
            )
        return await self.of_template(template)

    async def of_template(self, template: Template) -> JobForm:
        """Return the form of a template; raises NotFound for one that was removed."""
        return JobForm(template, await self._templates.inputs(template))

    async def request(
        self,
        form: JobForm,
        entered: EnteredForm,
    ) -> Invocation:
        """Return the checked request of an entered form.

        Raises InvalidParameters, NotFound, UsageError.
        """
        if isinstance(form.of, Template):
            return await self._templates.request(f"{form.of.name}@{form.of.version}", entered)
        request = await self._checks.of_type(form.of, entered)
        await self._published.check(form.of, [request.payload])
        return request
