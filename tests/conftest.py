import gc
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog

from sso.config import Settings
from sso.core.encryption import Keyring, MasterKey
from sso.db.database import Database
from sso.services import Services, build
from tests.kit import postgres
from tests.kit.constants import changed
from tests.kit.file_order import DurationRecorder, new_seed, order_files, shuffle_tests
from tests.kit.long_tests import IS_LONG_RUN
from tests.kit.memory_folder import use_memory_for_temporary_files
from tests.kit.open_database import open_database
from tests.kit.prepared_data import prepared_data
from tests.kit.processes import ProcessRunner, add_option
from tests.kit.quick_httpx import make_requests_quick
from tests.kit.quick_hypothesis import forget_constants_of_the_source, store_characters_of_utf8
from tests.kit.restored_logging import restored_logging
from tests.kit.server import QUICK, SLOW_MACHINE_S, TWO_WORKERS, Server, running
from tests.kit.shared_server import SharedServers
from tests.kit.tls_context import share_default_context

# Of the server that most files use.
WITHOUT_LIMITS = {f"SSO_RATE_{name}": "0" for name in ("LOGIN", "AUTHORIZE", "USER_CODE", "ADMIN")}
# Many servers wait for work at the same time. They look less often for what they learn by messages anyway.
LONG_INTERVALS = {
    "sso.bus.bus.RESCAN_S": 20,
    "sso.db.figures.INTERVAL_S": 20,
    "sso.db.listener.PROBE_EVERY_S": 20,
    "sso.gsid.backpressure.SAMPLE_INTERVAL_S": 2,
    "sso.mail.sender.MEASURE_S": 20,
    "sso.nodes.heartbeat.INTERVAL_S": 20,
    "sso.perm.changes.window_changes.INTERVAL_S": 20,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)
    parser.addoption("--store-durations", action="store_true", help="write tests/durations.json")
    parser.addoption(
        "--seed", type=int, metavar="N", help="repeat the order of a run; 0 sorts the tests (default: random)"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.seed is None:
        config.option.seed = getattr(config, "workerinput", {}).get("seed") or new_seed()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        use_memory_for_temporary_files()
        stack = ExitStack()
        stack.enter_context(prepared_data())
        config.add_cleanup(stack.close)
        if config.getoption("store_durations"):
            config.pluginmanager.register(DurationRecorder())
        if config.option.processes:
            config.pluginmanager.register(ProcessRunner())
    share_default_context()
    make_requests_quick()
    forget_constants_of_the_source()
    # Tracebacks of structlog take seconds if the package rich is installed, which a tool for tests needs.
    default = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*default[:-1], plain])
    # A cached logger would keep the configuration of the test that used it first.
    structlog.configure = _without_cache(structlog.configure)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Gives the seed to a process of pytest-xdist: all of them must have the same order."""
    node.workerinput["seed"] = node.config.option.seed


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of the tests: --seed {config.option.seed}"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    if exitstatus:
        terminalreporter.line(pytest_report_header(config))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects the tests without garbage collections, which would look at thousands of modules and tests each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Orders the tests. Between the two steps, pytest puts those together that share a fixture with a parameter."""
    shuffle_tests(items, config.option.seed)
    yield
    order_files(items, config.option.seed)


def pytest_collection_finish() -> None:
    """Excludes what exists now from garbage collections, which would look at thousands of tests each time.

    Tests make little garbage in cycles, so collections are rare. There is one after each file.
    """
    store_characters_of_utf8()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Restores the logging configuration after each test. A fixture for it would take 0.3 ms longer."""
    with restored_logging():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Finds what the tests of a file have left open here, and not during a test of another file.

    What remains, such as modules that were imported, is excluded from the next collections.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def _without_cache(configure: Callable[..., None]) -> Callable[..., None]:
    return lambda **options: configure(**options | {"cache_logger_on_first_use": False})


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Postgres]:
    with postgres.running() as server:
        yield server


@pytest.fixture(scope="module")
def durable_postgres(postgres_server: postgres.Postgres) -> Iterator[None]:
    """PostgreSQL with the settings of a real installation, as `sso doctor` asks for."""
    postgres_server.set_durable(True)
    yield
    postgres_server.set_durable(False)


@pytest.fixture
def dsn(postgres_server: postgres.Postgres) -> Iterator[str]:
    """A migrated database for this test alone."""
    dsn = postgres_server.fresh()
    yield dsn
    postgres_server.drop(dsn)


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    async with open_database(dsn, 4) as database:
        yield database


@pytest.fixture
def keyring() -> Keyring:
    return Keyring([MasterKey.generate()])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    # The cheapest password hash: most tests are not about it.
    return Settings(data_dir=tmp_path, argon2_time=1, argon2_kib=8, database_timeout_s=SLOW_MACHINE_S)


@pytest.fixture
async def services(settings: Settings, database: Database, keyring: Keyring) -> Services:
    services = build(settings, database, keyring)
    await services.key_rotation.ensure_signing_keys("ES256")
    await services.keys.load()
    return services


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, shared_servers: SharedServers) -> Iterator[Server]:
    """A server for the tests of a file, as good as new. It has two workers if the file is marked so."""
    workers = TWO_WORKERS if request.node.get_closest_marker("two_workers") else {}
    with shared_servers.use(**WITHOUT_LIMITS, **workers) as server:
        yield server


@pytest.fixture(scope="session")
def shared_servers(
    postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedServers]:
    with closing(SharedServers(partial(_new_server, postgres_server, tmp_path_factory))) as servers:
        yield servers


@pytest.fixture(scope="module")
def own_server(postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that no other file uses."""
    with _new_server(postgres_server, tmp_path_factory, WITHOUT_LIMITS) as server:
        yield server


@contextmanager
def _new_server(
    postgres_server: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory, settings: dict[str, str]
) -> Iterator[Server]:
    """A server with a new database, and with one worker if the settings do not say otherwise.

    A second worker would take a quarter of the processor time of all tests. In long runs each server has two.
    """
    dsn = postgres_server.fresh()
    own = {"SSO_DATABASE_URL": dsn, "SSO_DATABASE_POOL": "5", **changed(LONG_INTERVALS)}
    settings = QUICK | own | (TWO_WORKERS if IS_LONG_RUN else {"SSO_WORKERS": "1"}) | settings
    with running(tmp_path_factory.mktemp("server"), **settings) as server:
        yield server
    postgres_server.drop(dsn)
