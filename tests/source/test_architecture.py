"""The rules of the code base that a program can check: imports between packages, cycles, names, sizes of files."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import sso

PACKAGE_ROOT = Path(sso.__file__).parent
FILES = {path.relative_to(PACKAGE_ROOT).as_posix(): path for path in sorted(PACKAGE_ROOT.rglob("*.py"))}

# Modules that may import Quart: routes, sockets, pages, the web package, and the modules that join them.
WITH_QUART = {"app.py", "health.py", "accounts/account_page/session_restart.py"}
WITH_QUART_NAMES = {"routes.py", "sockets.py", "pages.py", "form.py", "view.py", "visitor.py"}
SERVICES = ("oauth", "gsid", "perm")  # the three services, which do not know each other

# The parts of sso.perm that other packages may import: changes, stores, input, their vocabulary (errors, names,
# records), the description of its routes, and the texts of explanations.
PERM_INTERFACE = (
    "changes", "stores", "input", "errors", "engine.reserved_names", "engine.records", "engine.rules",
    "engine.explanation.text", "api_operations",
)  # fmt: skip
# The management API authenticates its callers, reads their rights, and calls the operations of perm.
PERM_FOR_ADMIN = ("caller", "engine.required_rights", "operations", "visibility")
# These authenticate callers, build the resources, and manage the keys of applications.
PERM_FOR_CREDENTIALS = ("accepted_credentials", "authorization", "credentials", "wiring")
ADMIN_CREDENTIALS = {"admin/application_keys.py", "admin/caller.py", "admin/wiring.py"}
PERM_FOR_REPLICAS = ("sso.perm.replica.",)  # what a copy of the facts consists of, and its answers
PERM_BUILDERS = {"routes.py", "services.py"}  # these also import its routes and its wiring
PERM_FOR_BUILDERS = ("sso.perm.routes.", "sso.perm.authzen.routes.", "sso.perm.wiring.")

MAX_LINES = 300


@pytest.fixture(scope="module", autouse=True)
def _forgotten_afterwards() -> Iterator[None]:
    yield
    tree.cache_clear()
    nodes.cache_clear()


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text())


@cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(name)))


@cache
def imports(name: str) -> tuple[str, ...]:
    """The dotted names of everything that a file imports, also inside functions and under TYPE_CHECKING."""
    return tuple(_imports(name))


def _imports(name: str) -> Iterator[str]:
    for node in nodes(name):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative imports are not used here"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(*modules: str) -> set[str]:
    """The files that import one of these modules or something in it."""
    prefixes = tuple(f"{module}." for module in modules)
    return {name for name in FILES if any(f"{target}.".startswith(prefixes) for target in imports(name))}


def package(name: str) -> str:
    return name.partition("/")[0] if "/" in name else ""


def module_name(name: str) -> str:
    return f"sso.{name.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")


MODULES = {module_name(name): name for name in FILES}


def import_graph() -> dict[str, set[str]]:
    """The modules of sso, each with the modules that it imports."""
    graph: dict[str, set[str]] = {}
    for module, name in MODULES.items():
        targets = {target if target in MODULES else target.rpartition(".")[0] for target in imports(name)}
        graph[module] = (targets & MODULES.keys()) - {module}
    return graph


def test_modules_have_no_import_cycles() -> None:
    try:
        TopologicalSorter(import_graph()).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_class_names_are_unique() -> None:
    files: dict[str, list[str]] = defaultdict(list)
    for name in FILES:
        for node in nodes(name):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(name)
    assert {name: found for name, found in files.items() if len(found) > 1} == {}


def test_long_files_give_a_reason() -> None:
    """The docstring of a file with more than 300 lines says why, in a sentence with the words "300 lines"."""
    long_files = [name for name, path in FILES.items() if len(path.read_text().splitlines()) > MAX_LINES]
    unexplained = {name for name in long_files if f"{MAX_LINES} lines" not in (ast.get_docstring(tree(name)) or "")}
    assert unexplained == set()


def test_no_module_for_everything() -> None:
    assert [name for name in FILES if Path(name).stem in ("utils", "util", "helpers", "common", "misc")] == []


@pytest.mark.parametrize("lowest", ["core", "telemetry"])
def test_core_and_telemetry_import_no_other_package(lowest: str) -> None:
    for name in FILES:
        if package(name) == lowest:
            others = [target for target in imports(name) if target.startswith("sso.")]
            assert [target for target in others if not target.startswith(("sso.core.", f"sso.{lowest}."))] == [], name


def test_the_audit_trail_imports_only_the_database_and_core() -> None:
    """Every package writes entries."""
    for name in FILES:
        if package(name) == "audit":
            targets = [target for target in imports(name) if target.startswith("sso.")]
            assert [target for target in targets if not target.startswith(("sso.core.", "sso.db.", "sso.audit."))] == []


def test_only_routes_pages_and_web_import_quart() -> None:
    for name in importers("quart", "quart_trio") - WITH_QUART:
        assert package(name) == "web" or Path(name).name in WITH_QUART_NAMES or name.endswith("_pages.py"), name


def test_only_the_database_and_the_bus_import_asyncio() -> None:
    names = ("asyncio_loop", "connection", "connector", "database", "listener", "race", "standalone")
    assert importers("asyncio") == {*(f"db/{name}.py" for name in names), "bus/nats_transport.py"}
    assert importers("asyncpg") == {"db/driver_errors.py", "db/connection.py"}
    assert importers("trio_asyncio") == {"db/asyncio_loop.py"}


def test_one_file_imports_the_jwt_library() -> None:
    assert importers("jwt") == {"core/jwt.py"}


def test_only_one_package_imports_opentelemetry() -> None:
    """The packages of OpenTelemetry are optional, and slow to import."""
    assert {Path(name).parent.as_posix() for name in importers("opentelemetry")} == {"telemetry/otel"}
    assert {name for name in importers("sso.telemetry.otel") if package(name) != "telemetry"} == {"worker.py"}


def test_one_file_imports_the_nats_client() -> None:
    assert importers("nats") == {"bus/nats_transport.py"}


def test_one_file_imports_the_http_parser() -> None:
    assert importers("httptools") == {"serve/http1/head.py"}


def test_only_core_backups_and_the_game_client_import_cryptography() -> None:
    """The game client is a separate program, which shares no code with the service."""
    outside = {name for name in importers("cryptography") if package(name) != "core"}
    assert {name.rpartition("/")[0] for name in outside} == {"backup", "cli/play"}


def test_the_game_client_imports_nothing_of_the_service() -> None:
    names = {name for name in FILES if name.startswith("cli/play/")}
    for name in names:
        targets = [target for target in imports(name) if target.startswith("sso.")]
        assert [target for target in targets if not target.startswith("sso.cli.play.")] == [], name
    assert importers("sso.cli.play") <= names


def test_one_file_writes_the_output_of_commands() -> None:
    """It escapes what could control a terminal. The line of progress has control characters of its own."""
    calls = {
        name
        for name in FILES
        if package(name) == "cli"
        for node in nodes(name)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("click.echo", "click.secho", "print", "sys.stdout.write")
    }
    assert calls - {"cli/play/screen.py"} == {"cli/echo.py"}  # the game client shares no code with the service


def test_the_python_client_imports_nothing_of_the_service() -> None:
    for name in (name for name in FILES if package(name) == "client"):
        targets = [target for target in imports(name) if target.startswith("sso.")]
        assert [target for target in targets if not target.startswith("sso.client.")] == [], name


@pytest.mark.parametrize("service", SERVICES)
def test_the_three_services_do_not_import_each_other(service: str) -> None:
    others = importers(*(f"sso.{other}" for other in SERVICES if other != service))
    assert [name for name in others if package(name) == service] == []


def test_web_imports_no_endpoint() -> None:
    others = importers(*(f"sso.{other}" for other in ("accounts", "keys", "admin", *SERVICES)))
    assert [name for name in others if package(name) == "web"] == []


def test_other_packages_import_only_the_interface_of_perm() -> None:
    allowed = tuple(f"sso.perm.{part}." for part in PERM_INTERFACE)
    for name in importers("sso.perm"):
        if package(name) != "perm":
            more: tuple[str, ...] = PERM_FOR_BUILDERS if name in PERM_BUILDERS else ()
            if package(name) == "replica":
                more = PERM_FOR_REPLICAS
            if package(name) == "admin":
                parts = (*PERM_FOR_ADMIN, *(PERM_FOR_CREDENTIALS if name in ADMIN_CREDENTIALS else ()))
                more = tuple(f"sso.perm.{part}." for part in parts)
            targets = [f"{target}." for target in imports(name) if target.startswith("sso.perm.")]
            assert [target for target in targets if not target.startswith(allowed + more)] == [], name


def test_endpoints_of_permissions_and_sections_of_documents_are_adapters() -> None:
    """They translate between their input and the operations, so only their own package needs them."""
    assert {package(name) for name in importers("sso.perm.endpoints")} == {"perm"}
    assert {package(name) for name in importers("sso.state.sections")} == {"state"}


def test_permission_engine_imports_only_itself_and_core() -> None:
    for name in FILES:
        if name.startswith("perm/engine/"):
            targets = [target for target in imports(name) if target.startswith("sso.")]
            assert [target for target in targets if not target.startswith(("sso.core.", "sso.perm.engine."))] == [], (
                name
            )


@pytest.mark.parametrize(
    ("part", "forbidden"),
    [
        ("input", ("endpoints", "stores", "credentials")),
        ("stores", ("changes", "operations", "endpoints", "routes", "wiring", "authorization", "caller", "request")),
        ("operations", ("endpoints", "routes", "wiring", "request")),
        ("changes", ("operations", "endpoints", "routes", "wiring", "authorization", "caller", "request")),
        ("credentials", ("endpoints", "routes", "wiring")),
    ],
)
def test_parts_of_perm_import_downwards_only(part: str, forbidden: tuple[str, ...]) -> None:
    names = importers(*(f"sso.perm.{other}" for other in forbidden))
    assert [name for name in names if name.startswith(f"perm/{part}/")] == []


def test_versions_of_facts_stay_inside_the_stores() -> None:
    """Requests and endpoints read facts through `FactsReader`; caching and reading ahead are wrappers of it."""
    named = {name for name in FILES if "FactsVersion" in FILES[name].read_text()}
    stores = ("cached_facts", "caller_read", "facts", "facts_cache")
    assert named == {f"perm/stores/{name}.py" for name in stores}


def test_only_named_modules_read_the_clock_of_the_host() -> None:
    """The clocks of several hosts differ: what one writes and another judges is judged by `sso/db/clock.py`.

    The others print or store a time for people: the age of a backup, a player's code, the difference of the clocks, the
    end of a token on the machine that keeps it. The signed time of a guest comes from the device. A replica follows the
    clock of the service; its own one says how old the copy on its disk is.
    """
    reading = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("datetime", "utcnow"), ("date", "today")}
    readers = {
        name
        for name in FILES
        for node in nodes(name)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name | ast.Attribute)
        and (node.value.id if isinstance(node.value, ast.Name) else node.value.attr, node.attr) in reading
    }
    assert readers == {
        "db/clock.py", "doctor/database.py", "backup/create.py", "backup/base_backup.py", "cli/types.py",
        "cli/logins.py", "cli/play/screen.py", "cli/play/client.py", "replica/clock.py", "verification/verifier.py",
        "client/webhook_signature.py",
    }  # fmt: skip


def test_only_one_module_reads_the_environment() -> None:
    """metrics.py and privileges.py set variables for libraries, places.py builds the environment of a child."""
    readers = {
        name
        for name in FILES
        for node in nodes(name)
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "putenv"))
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and any("env" in n.name for n in node.names))
    }
    assert readers == {"environment.py", "telemetry/metrics.py", "serve/privileges.py", "db/embedded/binaries.py"}


def test_test_modules_import_no_other_test_module() -> None:
    """What several of them use is in ``conftest.py`` or ``tests/kit``."""
    imported = re.compile(r"^\s*(?:from|import) tests\.(?:\w+\.)*test_\w+", re.MULTILINE)
    tests = Path(__file__).parents[1]
    assert [path.name for path in sorted(tests.rglob("*.py")) if imported.search(path.read_text())] == []


def test_only_stores_make_statements() -> None:
    """A store is a module whose name ends so, or that has the SQL of one. Others call its methods."""
    makers = calls_of("Statement") | calls_of("BatchStatement")
    assert {
        name
        for name in makers
        if package(name) != "db"
        and "/stores/" not in name
        and not Path(name).stem.endswith(("store", "statements", "_sql"))
    } == set()


def calls_of(function: str) -> set[str]:
    """The files that call a function, or a method, with this name."""
    return {name for name in FILES if function in called_names(name)}


@cache
def called_names(name: str) -> frozenset[str]:
    functions = [node.func for node in nodes(name) if isinstance(node, ast.Call)]
    return frozenset(
        function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "") for function in functions
    )


def test_one_module_decides_what_counts_as_a_sign_in() -> None:
    """No other module makes an `AuthenticationContext` or names the values of `amr`."""
    module = "accounts/authentication_context.py"
    assert calls_of("AuthenticationContext") == {module}
    constants = {name for name in FILES for node in nodes(name) if getattr(node, "value", None) == "mfa"}
    assert constants == {module}
    changed = {
        name
        for name in FILES
        for node in nodes(name)
        if isinstance(node, ast.keyword) and node.arg in ("is_fresh", "has_second_factor", "proved")
    }
    assert changed == {module, "accounts/session_store.py"}  # the store passes them to its statement


def test_proofs_are_stated_where_they_are_checked() -> None:
    """A module that is added here must have checked the proof in the same request."""
    assert calls_of("by_password") == {
        "accounts/login/password_login.py",
        "accounts/recent_authentication.py",
        "accounts/authentication_context.py",  # a form that asks for the password alone
        "accounts/registration/pages.py",  # the first password of a new account
    }
    assert calls_of("by_passkey") == {"accounts/passkeys/authentication.py", "accounts/recent_authentication.py"}
    assert calls_of("by_provider") == calls_of("by_earlier_provider_login") == {"upstream/pages.py"}
    assert calls_of("by_mailed_link") == {"accounts/password_reset/pages.py"}
    assert calls_of("by_first_factor") == {"accounts/login/pages.py"}
    assert calls_of("after_password") == {"accounts/account_page/pages.py"}
    assert calls_of("by_ticket") == {"personal_data/closed_account.py"}
    assert calls_of("by_device_key") == {"players/guests.py"}
    assert calls_of("by_session_token") == {"accounts/session_tokens.py"}
    assert calls_of("by_browser") == {"gsid/login_issuer.py"}


def test_browser_sessions_start_with_an_authentication_context() -> None:
    """The store is the only one that inserts sessions, and its method takes nothing else."""
    inserting = {
        name
        for name in FILES
        for node in nodes(name)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and ("INTO browser_sessions" in node.value or "UPDATE browser_sessions SET created" in node.value)
        and package(name) != "db"
    }
    assert inserting == {"accounts/session_statements.py"}
    users = {"accounts/session_store.py", "accounts/sign_in_extension.py"}  # the store runs the statement of the latter
    assert importers("sso.accounts.session_statements") == users
    start = next(
        node
        for node in nodes("accounts/session_store.py")
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "start"
    )
    assert [ast.unparse(argument.annotation) for argument in start.args.args[1:3] if argument.annotation] == [
        "User",
        "AuthenticationContext",
    ]


CUTTING = {"removeprefix", "removesuffix", "partition", "rpartition", "split", "match", "fullmatch", "search", "sub"}


def test_no_code_cuts_up_the_text_of_an_error() -> None:
    """A FieldError has its path. ``str(error).partition(": ")`` would break with the first text that is worded anew."""

    def is_text(node: ast.expr) -> bool:
        match node:
            case ast.Attribute(attr="message") | ast.Call(func=ast.Name(id="str"), args=[ast.Name(id="error")]):
                return True
            case ast.Attribute(value=ast.Name(id="error"), attr="text"):
                return True
        return False

    assert {
        f"{name}:{node.lineno}"
        for name in FILES
        for node in nodes(name)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CUTTING
        and any(is_text(part) for part in (node.func.value, *node.args))
    } == set()
