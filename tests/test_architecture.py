"""The import rules between packages, checked against the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sso

PACKAGE_ROOT = Path(sso.__file__).parent
FILES = {path.relative_to(PACKAGE_ROOT).as_posix(): path for path in sorted(PACKAGE_ROOT.rglob("*.py"))}

# Modules that may import Quart: routes, sockets, pages, the web package, and what joins them.
WITH_QUART = {"app.py", "health.py"}
WITH_QUART_NAMES = {"routes.py", "sockets.py", "pages.py", "login_form.py", "account_view.py", "visitor.py"}
JOBS = ("oauth", "gsid", "perm")


def imports(path: Path) -> Iterator[str]:
    """The dotted names of everything that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it leads"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(*modules: str) -> set[str]:
    """The files that import one of these modules or something in it."""
    wanted = tuple(f"{module}." for module in modules)
    return {name for name, path in FILES.items() if any(f"{found}.".startswith(wanted) for found in imports(path))}


def package(name: str) -> str:
    return name.partition("/")[0] if "/" in name else ""


def test_core_imports_nothing_of_ours() -> None:
    for name, path in FILES.items():
        if package(name) == "core":
            assert [found for found in imports(path) if found.startswith("sso.") and "sso.core" not in found] == []


def test_quart_is_known_at_the_edge_only() -> None:
    for name in importers("quart", "quart_trio") - WITH_QUART:
        assert package(name) == "web" or Path(name).name in WITH_QUART_NAMES or name.endswith("_pages.py"), name


def test_only_the_database_and_its_loop_import_asyncio() -> None:
    assert importers("asyncio") == {"db/asyncio_loop.py", "db/database.py", "db/listener.py", "db/standalone.py"}
    assert importers("asyncpg") == {"db/driver_errors.py", "db/pool.py", "db/standalone.py"}
    assert importers("trio_asyncio") == {"db/asyncio_loop.py"}


def test_one_file_knows_the_jwt_library() -> None:
    assert importers("jwt") == {"core/jwt.py"}


def test_one_file_knows_the_http_parser() -> None:
    assert importers("httptools") == {"serve/http1/head.py"}


def test_cryptography_is_in_core_only() -> None:
    """And in the game client, which is no part of the service."""
    assert {package(name) for name in importers("cryptography")} == {"core", "play"}


def test_the_game_client_knows_nothing_of_the_service() -> None:
    for name in (name for name in FILES if package(name) == "play" or name == "cli/play.py"):
        ours = [found for found in imports(FILES[name]) if found.startswith("sso.")]
        assert [found for found in ours if not found.startswith("sso.play.")] == [], name
    assert importers("sso.play") - {"cli/play.py"} == {
        name for name in importers("sso.play") if package(name) == "play"
    }


@pytest.mark.parametrize("job", JOBS)
def test_the_three_jobs_do_not_import_each_other(job: str) -> None:
    others = importers(*(f"sso.{other}" for other in JOBS if other != job))
    assert [name for name in others if package(name) == job] == []


def test_web_knows_no_endpoint() -> None:
    others = importers(*(f"sso.{other}" for other in ("accounts", "keys", "admin", *JOBS)))
    assert [name for name in others if package(name) == "web"] == []


def test_the_environment_is_read_in_one_place() -> None:
    """metrics.py and privileges.py set variables for libraries; embedded.py makes up the environment of a child."""
    readers = {
        name
        for name, path in FILES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "putenv"))
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and any("env" in n.name for n in node.names))
    }
    assert readers == {"config.py", "metrics.py", "serve/privileges.py", "db/embedded/binaries.py"}


def test_no_module_for_everything() -> None:
    assert [name for name in FILES if Path(name).stem in ("utils", "util", "helpers", "common", "misc")] == []
