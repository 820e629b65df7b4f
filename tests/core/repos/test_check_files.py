"""Which changed files decide whether work passes."""

from __future__ import annotations

from itertools import chain

import pytest

from draftsman.repos.check_files import (
    ABSENT,
    REGULAR,
    ChangedFile,
    check_files,
    hidden_libraries,
    is_judged,
    judging_code,
    module_of,
    named_scripts,
    new_modules,
    run_texts,
    started_files,
)
from draftsman.repos.repo_profile import RepoProfile, profile

FORGED = {
    "pytest": "pytest.ini pytest.toml .pytest.toml tests/conftest.py tox.ini setup.cfg"
    " pyproject.toml",
    "python": "sitecustomize.py usercustomize.py x.pth evil.egg-info/entry_points.txt"
    " evil.dist-info/entry_points.txt .venv/bin/pytest venv/bin/python setup.py requirements.txt",
    "tox, nox": "tests/tox.toml noxfile.py toxfile.py requirements/dev-requirements.txt",
    "npm": "package.json .npmrc package-lock.json node_modules/jest/index.js"
    " node_modules/.bin/jest jest.config.mjs ui/jest.setup.ts .babelrc.json babel.config.js",
    "yarn": ".yarnrc.yml .yarn/releases/yarn.cjs yarn.lock yarn.config.cjs .pnp.cjs",
    "pnpm": ".pnpmfile.cjs pnpmfile.js pnpm-workspace.yaml pnpm-lock.yaml",
    "bun": "bunfig.toml bun.lock bun.lockb",
    "deno": "deno.json deno.jsonc deno.lock",
    "cargo": "Cargo.toml build.rs .cargo/config.toml rust-toolchain.toml Cargo.lock",
    "go": "go.mod go.sum go.work vendor/modules.txt vendor/a/a.go magefiles/test.go",
    "mvn": "pom.xml .mvn/jvm.config .mvn/extensions.xml mvnw"
    " src/test/resources/META-INF/services/org.junit src/test/resources/junit-platform.properties",
    "gradle": "build.gradle settings.gradle.kts gradle.properties buildSrc/src/main/kotlin/A.kt"
    " gradle/wrapper/gradle-wrapper.jar build-logic/A.java gradlew",
    "make": "Makefile makefile GNUmakefile rules.mk CMakeLists.txt justfile",
    "rspec": ".rspec Rakefile spec/spec_helper.rb rakelib/test.rake Gemfile Gemfile.lock",
    "phpunit": "phpunit.xml phpunit.xml.dist composer.json vendor/bin/phpunit tests/bootstrap.php",
    "others": "Package.swift Setup.hs project.clj test/flutter_test_config.dart mix.exs build.zig"
    " tests/setup_suite.bash features/support/env.rb vitest.workspace.ts rector.php hatch_build.py",
    "all": ".github/workflows/ci.yml .gitattributes .gitignore .env a/.hidden/code.py Dockerfile"
    " tests/fixtures/package.json tests/fixtures/pytest.ini fixtures/tsconfig.build.json"
    " config/app.yaml data.json a.exe lib.so cache.pyc",
}
HONEST = (
    # one row for each of twenty changes that teams make
    "src/pay.py tests/test_pay.py",
    "pay/__init__.py pay/refunds.py pay/tests/test_refunds.py",
    "tests/helpers.py tests/test_refund.py",
    "tests/fixtures/refund.json tests/test_refund.py",
    "tests/fixtures/config.toml tests/fixtures/broken.ini",
    "pay/proto/pay_pb2.py pay/proto/pay_pb2.pyi pay/proto/pay.proto",
    "tests/__snapshots__/test_cli.ambr.json tests/__snapshots__/refund.snap",
    "tests/cassettes/stripe.yaml",
    "ui/src/App.tsx ui/src/App.test.tsx ui/src/App.module.css",
    "ui/src/__snapshots__/App.test.tsx.snap ui/public/logo.svg",
    "internal/pay/pay.go internal/pay/pay_test.go internal/pay/testdata/refund.json",
    "crates/pay/src/lib.rs crates/pay/tests/refund.rs",
    "src/main/java/com/acme/Pay.java src/test/java/com/acme/PayTest.java",
    "app/Pay.php tests/PayTest.php",
    "app/models/pay.rb spec/models/pay_spec.rb spec/support/refunds.rb",
    "lib/pay.ex test/pay_test.exs",
    "README.md docs/pay.rst docs/pay.png",
    "migrations/0007_refunds.sql pay/migrations/0007_refunds.py",
    "templates/refund.html templates/mail.txt locales/de.po",
    "src/pay.c include/pay.h tests/pay_test.cpp",
    "scripts/release.sh notebooks/refunds.ipynb",
)


def changed(path: str, old: str = REGULAR, new: str = REGULAR) -> ChangedFile:
    return ChangedFile(path, old, new)


@pytest.mark.parametrize("ecosystem", FORGED)
def test_what_can_fake_a_green_run_is_a_check_file(ecosystem: str) -> None:
    files = FORGED[ecosystem].split()
    assert check_files(map(changed, files), RepoProfile()) == sorted(files)


def test_ordinary_changes_decide_nothing() -> None:
    files = list(chain.from_iterable(row.split() for row in HONEST))
    assert check_files(map(changed, files), RepoProfile()) == []


@pytest.mark.parametrize("mode", ["120000", "160000"])
def test_links_and_repositories_are_check_files(mode: str) -> None:
    """Whether the work adds one, or makes a file one, or the reverse."""
    for old, new in ((ABSENT, mode), (REGULAR, mode), (mode, REGULAR), (mode, ABSENT)):
        assert check_files([changed("src/pay.py", old, new)], RepoProfile()) == ["src/pay.py"]


def test_a_profile_narrows_and_widens_what_is_ordinary() -> None:
    rules = profile({"check_files": ["tools/", "*_gen.py"], "ordinary_files": ["api/*.yaml"]})
    files = ["tools/a.py", "pay/b_gen.py", "api/pay.yaml", "src/c.py"]
    assert check_files(map(changed, files), rules) == ["pay/b_gen.py", "tools/a.py"]
    link = changed("api/pay.yaml", ABSENT, "120000")
    assert check_files([link], rules) == ["api/pay.yaml"], "a link is never ordinary"


COMMANDS = (
    ["./run-tests", "src/pay.py"],
    ["sh", "-e", "bin/lint.sh"],
    ["{python}", "-P", "tools/types.py"],
    ["python3", "-W", "error", "-m", "tools.check", "tests"],
    ["/usr/bin/env", "true"],
    ["make", "check"],
)


def test_programs_scripts_and_modules_of_the_commands_are_started() -> None:
    commands = [{"name": str(n), "command": command} for n, command in enumerate(COMMANDS)]
    fields = {"path": "api", "validation_commands": commands}
    assert list(started_files(profile(fields))) == [
        "api/run-tests",
        "api/bin/lint.sh",
        "api/tools/types.py",
        "api/tools/check.py",
        "api/tools/check/__main__.py",
        "api/tools/check/__init__.py",
    ]
    assert [module_of(command) for command in COMMANDS][2:4] == [None, "tools.check"]


PACKAGE = """{
  "main": "index.js",
  "scripts": {
    "pretest": "sh ci/pre.sh", "test": "npm run unit && make -s check", "unit": "node run.mjs",
    "start": "node server.js", "lint": "eslint src/index.js"
  }
}"""
MAKEFILE = """\
all: pay.js
\tnode build.js
pay.js: source.js
\tnode compile.js
check: lint
\t@sh ./ci/check.sh tests/test_pay.py
lint: ; python tools/lint.py
"""
RUNNER_TEXTS = {"ui/package.json": PACKAGE, "ui/Makefile": MAKEFILE, "ui/tox.ini": "sh a.sh"}


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        (["npm", "test"], {"ci/pre.sh", "run.mjs", "ci/check.sh", "tools/lint.py"}),
        (["yarn", "run", "lint"], {"src/index.js"}),
        (["make", "-j4", "check"], {"ci/check.sh", "tools/lint.py"}),
        (["make"], {"build.js", "compile.js", "ci/check.sh", "tools/lint.py"}),
        (["tox", "-e", "py"], {"a.sh"}),
        (["python3", "-m", "tox"], {"a.sh"}),
        (["pytest"], set()),
    ],
)
def test_scripts_are_those_that_a_command_runs(command: list[str], scripts: set[str]) -> None:
    named = {
        script
        for path, text in run_texts(command, RUNNER_TEXTS, "ui")
        for script in named_scripts(path, text, "ui")
    }
    tests = {"ui/tests/test_pay.py", "tests/test_pay.py"}
    assert named - tests == {f"{folder}{script}" for script in scripts for folder in ("ui/", "")}
    assert all(is_judged(path, RepoProfile()) for path in named & tests)


def test_changed_code_that_decides_is_named() -> None:
    """Added code is absent without the changes, so nothing that it breaks is hidden then."""
    changes = [
        *(
            changed(path)
            for path in ("ci/check.sh", "vendor/a.go", "conftest.py", "a.yaml", "b.py")
        ),
        changed("ci/new.sh", ABSENT),
        changed("c.py", REGULAR, "120000"),
    ]
    scripts = ["ci/check.sh", "ci/new.sh"]
    files = check_files(changes, RepoProfile(), scripts=scripts)
    assert judging_code(changes, files) == ["ci/check.sh", "vendor/a.go", "c.py"]


def test_modules_of_packages_have_longer_names() -> None:
    added = [
        changed(path, ABSENT)
        for path in (
            *("pytest.py", "json/__init__.py", "json/tool.py", "tests/iniconfig.py"),
            *("pay/email.py", "pay/calendar/__init__.py", "native.cpython-311.so"),
        )
    ]
    packages = ("json", "pay", "pay/calendar")
    assert new_modules([*added, changed("os.py")], packages) == {
        "pytest": ["pytest.py"],
        "json": ["json/__init__.py"],
        "iniconfig": ["tests/iniconfig.py"],
        "native": ["native.cpython-311.so"],
    }


def test_files_of_ruby_with_the_name_of_a_library_of_the_commands_hide_it() -> None:
    rules = profile({"validation_commands": [{"name": "a", "command": ["bundle", "exec", "cuke"]}]})
    paths = ("lib/rspec/core.rb", "lib/cuke.rb", "lib/pay.rb", "docs/rspec.md")
    added = [changed(path, ABSENT) for path in paths]
    assert hidden_libraries(added, rules) == ["lib/rspec/core.rb", "lib/cuke.rb"]
    assert hidden_libraries([changed("lib/rspec.rb")], rules) == []
