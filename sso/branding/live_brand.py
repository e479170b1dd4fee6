"""The brand in the memory of each worker: the settings, and what administrators have stored for everything else."""

import structlog
import trio
from msgspec.structs import replace

from sso.branding import store
from sso.branding.operations import TOPIC
from sso.branding.record import fixed_fields
from sso.branding.settings_brand import settings_brand
from sso.bus.bus import Bus
from sso.bus.reloading import keep_loaded
from sso.core.brand import Brand, CurrentBrand
from sso.core.colour import Colour
from sso.core.logo import Logo, check_logo
from sso.db.database import Database
from sso.db.errors import DatabaseError
from sso.settings import Settings

log = structlog.get_logger()


class LiveBrand:
    """Reads the stored brand at the start and after each change, which arrives by the bus."""

    def __init__(self, database: Database, settings: Settings, brand: CurrentBrand) -> None:
        self._database = database
        self._settings_brand = settings_brand(settings)
        self._fixed = fixed_fields(settings)
        self._brand = brand
        self._version = -1

    async def load(self) -> None:
        stored = await store.read_brand(self._database)
        if stored.version == self._version:
            return
        texts = {name: text for name, text in stored.texts.items() if text and name not in self._fixed}
        logo = await self._logo(texts.pop("logo", ""))
        accent = Colour.parse(texts.pop("accent")) if "accent" in texts else self._settings_brand.accent
        brand: Brand = replace(self._settings_brand, accent=accent, logo=logo or self._settings_brand.logo, **texts)
        self._version = stored.version
        self._brand.replace(brand)

    async def _logo(self, logo_id: str) -> Logo | None:
        current = self._brand.value.logo
        if current and current.digest == logo_id:
            return current
        content = await store.read_logo(self._database, logo_id) if logo_id else None
        return await trio.to_thread.run_sync(check_logo, content) if content else None

    async def run(self, bus: Bus, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await keep_loaded(bus, TOPIC, self.load, _log_failure, task_status=task_status)


def _log_failure(error: DatabaseError) -> None:
    log.warning("brand.read_failed", reason=str(error))
