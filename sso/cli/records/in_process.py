"""The management API in the process of a command, for a machine on which no service runs."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sso.admin.operator_api import OperatorApi
from sso.cli.context import LocalServices
from sso.core.algorithms import ALGORITHMS, CHEAP_ALGORITHMS
from sso.core.operator_call import OperatorAnswer, OperatorCall, Progress, Respond
from sso.db.clock_sync import measure_clock
from sso.keys.shared_settings import require_shared_settings
from sso.perm.stores.seed import seed_central_application
from sso.services import build

T = TypeVar("T")


async def run_in_process(local: LocalServices, work: Callable[[Respond], Awaitable[T]]) -> T:
    """Builds the services, runs ``work`` and returns its result.

    The built-in roles are created if they are missing, since this may be the first command on a new
    database.
    """

    await seed_central_application(local.database)
    await measure_clock(local.database, samples=1)
    services = build(local.settings, local.database, local.keyring)
    api = OperatorApi(services.management, local.database.clock)

    async def respond(call: OperatorCall, progress: Progress) -> OperatorAnswer:
        """Does first what a service does when it starts."""
        if "/signing-keys" in call.path:
            await services.key_rotation.ensure_signing_keys(ALGORITHMS[0], sides=CHEAP_ALGORITHMS)
        elif call.path.endswith("/service-jwt"):
            require_shared_settings(local.settings)  # the base URL is the audience
        return await api.respond(call, progress)

    try:
        return await work(respond)
    finally:
        await services.bus.send_once()  # the workers of other machines notice the changes at once
