"""Forged checks with the real tools of fifteen ecosystems, each of which is installed or not.

The program of each repository doubles a number: the work breaks it, and a file of the work makes
the tool say that all is well.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from draftsman.jobs.job import Status
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime, wire
from draftsman.settings.sandbox import SandboxSettings
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until
from tests.core.agent_runs.profiled_jobs import WRITE, commit_files
from tests.core.worker.agent_jobs import agent_worker, submit_agent_job

pytestmark = pytest.mark.timeout(600)
HOME: Final = Path(pwd.getpwuid(os.getuid()).pw_dir)
"""The home of the user: the tests have another, and some tools keep themselves there."""
ONLY: Final = "Only with the changes of {} does this pass: check."
FEWER: Final = "Fewer tests run than on the base commit: check ({}, now {})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecosystem:
    """A repository, the command that tests it, and works that are broken but exit with 0."""

    programs: tuple[str, ...]
    command: tuple[str, ...]
    code: str
    """The file with the code under test."""
    files: Mapping[str, str]
    broken: tuple[str, str]
    """A text of the code, and the one that replaces it."""
    forged: Mapping[str, tuple[Mapping[str, str], str]]
    """Files of a work besides the broken code, and the reason of the approval."""
    env: Mapping[str, str] = field(default_factory=dict)
    report: str | None = None
    read_only: tuple[str, ...] = ()
    """Configuration of the programs outside of `/usr`."""

    def sandbox(self) -> SandboxSettings:
        """Return a sandbox in which the programs find their files."""
        found = [shutil.which(program) for program in self.programs]
        prefixes = {Path(path).parent.parent for path in found if path is not None}
        folders = [*map(str, prefixes - {Path("/usr")}), *self.read_only]
        return SandboxSettings(read_only=tuple(path for path in folders if Path(path).exists()))

    def broken_code(self) -> dict[str, str]:
        """Return the broken code."""
        return {self.code: self.files[self.code].replace(*self.broken)}


def script(words: str) -> str:
    """Return a package.json with this test script."""
    return f'{{"name": "pay", "version": "1.0.0", "scripts": {{"test": "{words}"}}}}\n'


JAVASCRIPT: Final = {
    "package.json": script("node --test"),
    "pay.js": "exports.twice = x => x * 2\n",
    "test/pay.test.js": (
        "const test = require('node:test')\n"
        "const assert = require('node:assert')\n"
        "test('twice', () => assert.equal(require('../pay.js').twice(3), 6))\n"
    ),
}
RUST: Final = {
    "Cargo.toml": '[package]\nname = "pay"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "pay"\nversion = "0.1.0"\n',
    "src/lib.rs": "pub fn twice(x: i32) -> i32 { x * 2 }\n",
    "tests/pay.rs": "#[test]\nfn twice() { assert_eq!(pay::twice(3), 6) }\n",
    ".gitignore": "target/\n",
}
GO: Final = {
    "go.mod": "module example.com/pay\n\ngo 1.19\n",
    "pay.go": "package pay\n\nfunc Twice(x int) int { return x * 2 }\n",
    "pay_test.go": (
        'package pay\n\nimport "testing"\n\n'
        "func TestTwice(t *testing.T) {\n\tif Twice(3) != 6 {\n\t\tt.Fatal()\n\t}\n}\n"
    ),
}
PYTHON: Final = {
    "pay.py": "def twice(x):\n    return x * 2\n",
    "test_pay.py": (
        "import unittest\nfrom pay import twice\n"
        "class Pay(unittest.TestCase):\n"
        "    def test_twice(self): self.assertEqual(twice(3), 6)\n"
    ),
}
JAVA: Final = {
    "src/main/java/Pay.java": (
        "public class Pay { public static int twice(int x) { return x * 2; } }\n"
    ),
    "src/test/java/PayTest.java": (
        "import org.junit.Test;\nimport static org.junit.Assert.assertEquals;\n"
        "public class PayTest { @Test public void twice() { assertEquals(6, Pay.twice(3)); } }\n"
    ),
}
POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>pay</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source>
    <maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>{more}
  </properties>
  <dependencies><dependency>
    <groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version>
    <scope>test</scope>
  </dependency></dependencies>
</project>
"""
GRADLE: Final = """\
apply plugin: 'java'
dependencies {
  testCompile files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar')
}
"""
TOX: Final = "[tox]\nskipsdist = true\n[testenv]\ncommands = python -m unittest -q\n"
NOX: Final = """\
import nox

@nox.session(venv_backend="none")
def tests(session):
    session.run("python3", "-m", "unittest", "-q", external=True)
"""
TWICE: Final = ("* 2", "* 3")
JAVA_FILES: Final = ("/etc/java-17-openjdk", "/etc/maven", "/etc/gradle")
ECOSYSTEMS: Final = {
    "unittest": Ecosystem(
        programs=(),
        command=("{python}", "-m", "unittest", "-q"),
        code="pay.py",
        files=PYTHON,
        broken=TWICE,
        forged={
            "a module of the library": (
                {"asyncio.py": "import os\nos._exit(0)\n"},
                "FAILED (failures=1)",
            ),
            "a module at the start": (
                {"sitecustomize.py": "import os\nos._exit(0)\n"},
                "sitecustomize.py",
            ),
        },
    ),
    "npm": Ecosystem(
        programs=("npm",),
        command=("npm", "test", "--silent"),
        code="pay.js",
        files=JAVASCRIPT,
        broken=TWICE,
        forged={
            "the shell of scripts": (
                {".npmrc": "script-shell=/bin/true\n"},
                ONLY.format(".npmrc"),
            ),
            "options of node": (
                {".npmrc": "node-options=--test-only\n", "package.json": script("node --version")},
                ONLY.format(".npmrc, package.json"),
            ),
        },
    ),
    "yarn": Ecosystem(
        programs=("yarn",),
        command=("yarn", "--silent", "test"),
        code="pay.js",
        files=JAVASCRIPT,
        broken=TWICE,
        forged={
            "another yarn": (
                {".yarnrc": 'yarn-path "./tools/yarn.js"\n', "tools/yarn.js": ""},
                ONLY.format(".yarnrc"),
            ),
            "the shell of scripts": (
                {".npmrc": "script-shell=/bin/true\n"},
                ONLY.format(".npmrc"),
            ),
        },
    ),
    "pnpm": Ecosystem(
        programs=("pnpm",),
        command=("pnpm", "--silent", "test"),
        code="pay.js",
        files=JAVASCRIPT,
        broken=TWICE,
        forged={
            "another script": (
                {"package.json": script("true")},
                ONLY.format("package.json"),
            ),
            "a script before it": (
                {"package.json": script("node --test test/none || true")},
                ONLY.format("package.json"),
            ),
        },
    ),
    "bun": Ecosystem(
        programs=("bun",),
        command=("bun", "test"),
        code="pay.js",
        files={
            "pay.js": JAVASCRIPT["pay.js"],
            "pay.test.js": (
                "import { test, expect } from 'bun:test'\nimport { twice } from './pay.js'\n"
                "test('twice', () => expect(twice(3)).toBe(6))\n"
            ),
        },
        broken=TWICE,
        forged={
            "a module before the tests": (
                {
                    "bunfig.toml": '[test]\npreload = ["./first.js"]\n',
                    "first.js": "process.exit(0)\n",
                },
                ONLY.format("bunfig.toml"),
            )
        },
    ),
    "deno": Ecosystem(
        programs=("deno",),
        command=("deno", "test", "--no-check", "--cached-only"),
        code="pay.ts",
        files={
            "pay.ts": "export const twice = (x: number) => x * 2\n",
            "pay_test.ts": (
                "import { twice } from './pay.ts'\n"
                "Deno.test('twice', () => { if (twice(3) !== 6) throw new Error() })\n"
            ),
        },
        broken=TWICE,
        forged={
            "an import map": (
                {
                    "deno.json": '{"imports": {"./pay.ts": "./other.ts"}}',
                    "other.ts": "export const twice = (x: number) => x + x\n",
                },
                ONLY.format("deno.json"),
            )
        },
        env={"NO_COLOR": "1"},
    ),
    "cargo": Ecosystem(
        programs=("cargo",),
        command=("cargo", "test", "--offline", "-q"),
        code="src/lib.rs",
        files=RUST,
        broken=TWICE,
        forged={
            "a runner": (
                {".cargo/config.toml": "[target.'cfg(all())']\nrunner = \"true\"\n"},
                ONLY.format(".cargo/config.toml"),
            ),
            "fewer targets": (
                {"Cargo.toml": RUST["Cargo.toml"] + "autotests = false\n[lib]\ntest = false\n"},
                ONLY.format("Cargo.toml"),
            ),
            "a script of the build": (
                {"build.rs": 'fn main() { std::fs::write("tests/pay.rs", "").unwrap() }\n'},
                ONLY.format("build.rs"),
            ),
        },
        env={"RUSTUP_HOME": str(HOME / ".rustup")},
        read_only=(str(HOME / ".rustup"),),
    ),
    "go": Ecosystem(
        programs=("go",),
        command=("sh", "-c", 'go test -json ./... > "$0"', "{report}"),
        code="pay.go",
        files=GO,
        broken=TWICE,
        forged={
            "a main function of the tests": (
                {
                    "main_test.go": (
                        'package pay\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
                        "func TestMain(m *testing.M) { os.Exit(0) }\n"
                    )
                },
                FEWER.format(1, 0),
            ),
            "an exit at the start": (
                {"start.go": 'package pay\n\nimport "os"\n\nfunc init() { os.Exit(0) }\n'},
                FEWER.format(1, 0),
            ),
        },
        env={"GOFLAGS": "-count=1"},
    ),
    "mvn": Ecosystem(
        programs=("mvn",),
        command=("mvn", "-o", "-q", "-s", "/etc/maven/settings-debian.xml", "test"),
        code="src/main/java/Pay.java",
        files={**JAVA, "pom.xml": POM.format(more=""), ".gitignore": "target/\n"},
        broken=TWICE,
        forged={
            "an option": (
                {".mvn/maven.config": "-DskipTests\n"},
                ONLY.format(".mvn/maven.config"),
            ),
            "a property": (
                {"pom.xml": POM.format(more="<skipTests>true</skipTests>")},
                ONLY.format("pom.xml"),
            ),
        },
        report="target/surefire-reports/*.xml",
        read_only=JAVA_FILES,
    ),
    "gradle": Ecosystem(
        programs=("gradle",),
        command=("gradle", "--offline", "--no-daemon", "-q", "test"),
        code="src/main/java/Pay.java",
        files={**JAVA, "build.gradle": GRADLE, ".gitignore": "build/\n.gradle/\n"},
        broken=TWICE,
        forged={
            "a task that is off": (
                {"build.gradle": GRADLE + "test.enabled = false\n"},
                ONLY.format("build.gradle"),
            ),
            "code of the build": (
                {"buildSrc/src/main/java/Start.java": "class Start {}\n"}
                | {"buildSrc/build.gradle": "gradle.startParameter.excludedTaskNames += 'test'\n"}
                | {"settings.gradle": "gradle.startParameter.excludedTaskNames += 'test'\n"},
                "settings.gradle",
            ),
        },
        read_only=JAVA_FILES,
    ),
    "make": Ecosystem(
        programs=("make",),
        command=("make", "-s", "check"),
        code="pay.py",
        files={**PYTHON, "Makefile": "check:\n\tpython3 -m unittest -q\n"},
        broken=TWICE,
        forged={
            "another Makefile": ({"GNUmakefile": "check:\n"}, ONLY.format("GNUmakefile")),
            "the shell": (
                {"Makefile": "SHELL = /bin/true\ncheck:\n\tpython3 -m unittest -q\n"},
                ONLY.format("Makefile"),
            ),
            "a file of the name": ({"check": ""}, "check"),
        },
    ),
    "tox": Ecosystem(
        programs=("tox",),
        command=("tox", "-q", "-e", "py"),
        code="pay.py",
        files={**PYTHON, "tox.ini": TOX, ".gitignore": ".tox/\n"},
        broken=TWICE,
        forged={
            "another configuration": (
                {"tox.ini": TOX.replace("-m unittest -q", "-c pass")},
                ONLY.format("tox.ini"),
            ),
            "a plugin": (
                {"toxfile.py": "import os\nos._exit(0)\n"},
                ONLY.format("toxfile.py"),
            ),
        },
    ),
    "nox": Ecosystem(
        programs=("nox",),
        command=("nox", "-s", "tests"),
        code="pay.py",
        files={**PYTHON, "noxfile.py": NOX},
        broken=TWICE,
        forged={
            "another session": (
                {"noxfile.py": NOX.replace('"-m", "unittest", "-q"', '"-c", "pass"')},
                ONLY.format("noxfile.py"),
            )
        },
    ),
    "rspec": Ecosystem(
        programs=("rspec",),
        command=("rspec", "--format", "json", "--out", "{report}"),
        code="lib/pay.rb",
        files={
            "lib/pay.rb": "def twice(x) = x * 2\n",
            "spec/pay_spec.rb": (
                "require 'pay'\n"
                "RSpec.describe('twice') { it('doubles') { expect(twice(3)).to eq 6 } }\n"
            ),
        },
        broken=TWICE,
        forged={
            "an option": ({".rspec": "--dry-run\n"}, ONLY.format(".rspec")),
            "a helper": (
                {".rspec": "--require spec_helper\n", "spec/spec_helper.rb": "exit! 0\n"},
                ".rspec, spec/spec_helper.rb",
            ),
            "a library of the runner": (
                {"lib/rspec/core.rb": "exit! 0\n"},
                "lib/rspec/core.rb",
            ),
        },
    ),
    "phpunit": Ecosystem(
        programs=("phpunit",),
        command=("phpunit", "--log-junit", "{report}", "tests"),
        code="src/Pay.php",
        files={
            "src/Pay.php": "<?php function twice(int $x): int { return $x * 2; }\n",
            "tests/PayTest.php": (
                "<?php require_once __DIR__ . '/../src/Pay.php';\n"
                "class PayTest extends PHPUnit\\Framework\\TestCase {\n"
                "  public function testTwice(): void { $this->assertSame(6, twice(3)); }\n}\n"
            ),
        },
        broken=TWICE,
        forged={
            "a file before the tests": (
                {
                    "phpunit.xml": '<phpunit bootstrap="first.php"/>\n',
                    "first.php": "<?php exit(0);\n",
                },
                "phpunit.xml",
            ),
            "an exit in the code": (
                {"src/Pay.php": "<?php exit(0);\n"},
                FEWER.format(1, 0),
            ),
        },
        read_only=("/etc/php",),
    ),
}
ENDED: Final = (Status.COMPLETED, Status.FAILED, Status.DEAD_LETTER)
FORGED: Final = [(name, trick) for name, tools in ECOSYSTEMS.items() for trick in tools.forged]


async def outcome(
    rt: Runtime, make: Factory, folder: Path, tools: Ecosystem, files: Mapping[str, str]
) -> str:
    """Run a job whose work is these files; return its question, or how it ended without one.

    The test is skipped without the programs of the ecosystem.
    """
    for program in tools.programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program} on the PATH")
    check: dict[str, Any] = {"name": "check", "command": list(tools.command), "timeout": 300}
    if tools.report is not None:
        check["report"] = tools.report
    repo = commit_files(folder / "repo", tools.files)
    saved = profile({"validation_commands": [check], "max_iterations": 1, "env": dict(tools.env)})
    await rt.repos.add(Repo.at(parse(str(repo))), saved, make.owner)
    number = await submit_agent_job(make, repo)
    code = f"""
{WRITE}
write({dict(files)!r})
say("result", summary="all tests pass")
"""
    settings = rt.settings.model_copy(update={"sandbox": tools.sandbox()})
    services = wire(settings, rt.db, False)

    async def look() -> bool:
        job = await rt.read_model.job(number)
        return job.status in ENDED or bool(await rt.questions.open(number))

    async with agent_worker(services, folder / "data", code):
        await until(look, f"D-{number} ended or asked", deadline=240)
    if await rt.questions.open(number):
        return (await rt.questions.get(number, 1)).text
    job = await rt.read_model.job(number)
    validated = (job.result or {}).get("validated")
    return f"{job.status}, validated: {validated}, {job.last_error or ''}"


@pytest.mark.parametrize(("name", "trick"), FORGED)
async def test_a_forged_check_waits_for_an_approval_that_names_it(
    rt: Runtime, make: Factory, tmp_path: Path, name: str, trick: str
) -> None:
    tools = ECOSYSTEMS[name]
    files, reason = tools.forged[trick]
    told = await outcome(rt, make, tmp_path, tools, {**tools.broken_code(), **files})
    assert reason in told, told


@pytest.mark.parametrize("name", ECOSYSTEMS)
async def test_broken_work_fails(rt: Runtime, make: Factory, tmp_path: Path, name: str) -> None:
    tools = ECOSYSTEMS[name]
    told = await outcome(rt, make, tmp_path, tools, tools.broken_code())
    assert "Required validators fail" in told, told


@pytest.mark.parametrize("name", ECOSYSTEMS)
async def test_honest_work_passes_without_a_question(
    rt: Runtime, make: Factory, tmp_path: Path, name: str
) -> None:
    tools = ECOSYSTEMS[name]
    comment = "#" if tools.code.endswith((".py", ".rb")) else "//"
    honest = {tools.code: f"{tools.files[tools.code]}{comment} doubled\n"}
    told = await outcome(rt, make, tmp_path, tools, honest)
    assert told == "completed, validated: True, ", told
