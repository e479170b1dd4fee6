"""The facts about a user at an application, and what is computed from them."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import Struct, field
from msgspec.structs import replace

from sso.core.net import Address
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.effective_permissions import EffectivePermissions, compute_permissions
from sso.perm.engine.explanation.explain import explain_all, explain_rule
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.records import OwnRecord
from sso.perm.engine.render import DEFAULT_OPTIONS, render
from sso.perm.engine.secret_rights import SecretRights, secret_rights
from sso.perm.engine.validity import valid_until
from sso.perm.stores.compilation import LARGE_BYTES

T = TypeVar("T")
RunInThread: TypeAlias = Callable[..., Awaitable[Any]]  # like Database.run_in_thread

RULE_BYTES = 256  # an estimate of a rule with its sources and its name
MAX_VALUES = 16  # computed from the same facts, such as responses with different options
_FACTS_SHARE = 8  # decoded JSON takes about as many times its length


class Memo:
    """Values computed from facts, for the seconds in which nothing of the facts ends.

    Only the event loop changes one that others can see: a thread computes with a copy.
    """

    __slots__ = ("changes", "rendered_bytes", "since", "until", "values")

    def __init__(self) -> None:
        self.since, self.until = 0, 0
        self.values: dict[Any, Any] = {}
        self.rendered_bytes = 0
        self.changes = 0  # how often its size may have changed

    def has(self, name: object, now: int) -> bool:
        return self.since <= now < self.until and name in self.values

    def copy(self) -> "Memo":
        copy = Memo()
        copy.since, copy.until, copy.values = self.since, self.until, self.values.copy()
        return copy

    def adopt(self, other: "Memo") -> None:
        """Adds the values of a copy, unless time has passed meanwhile and they have ended."""
        if other.until > self.until:
            self.clear()
            self.since, self.until = other.since, other.until
        if other.until == self.until:
            for name in other.values.keys() - self.values.keys():
                self.add(name, other.values[name])

    def clear(self) -> None:
        self.values.clear()
        self.rendered_bytes = 0
        self.changes += 1

    def add(self, name: object, value: object) -> None:
        if len(self.values) >= MAX_VALUES:
            self.clear()
        self.values[name] = value
        self.changes += 1
        if isinstance(value, bytes):
            self.rendered_bytes += len(value)
        elif isinstance(value, dict):
            self.rendered_bytes += len(value) * RULE_BYTES


class LoadedFacts(Struct, frozen=True, eq=False):
    """The facts about a user at an application."""

    application: CompiledApplication
    facts: PermissionFacts
    user_exists: bool
    name: str  # of the application
    settings: dict[str, Any]  # of the application
    json_bytes: int = 0  # of the user's own data
    memo: Memo = field(default_factory=Memo)

    @property
    def project_id(self) -> str | None:
        return self.facts.home.id if self.facts.home else None

    @property
    def is_removed(self) -> bool:
        """Whether the application or its project is removed."""
        return self.facts.removed or (self.facts.home is not None and self.facts.home.removed)

    @property
    def estimated_bytes(self) -> int:
        effective: EffectivePermissions | None = self.memo.values.get("effective")
        rules = len(effective.rules) if effective else 0
        return self.json_bytes * _FACTS_SHARE + rules * RULE_BYTES + self.memo.rendered_bytes

    def at_address(self, address: Address | None) -> "LoadedFacts":
        """Returns the same facts for a user at another address."""
        facts = replace(self.facts, user=replace(self.facts.user, address=address))
        return replace(self, facts=facts, memo=Memo())

    @property
    def is_large(self) -> bool:
        """Whether computing the permissions takes more than a few milliseconds."""
        return self.json_bytes > LARGE_BYTES or self.application.is_large

    async def prepare(self, run_in_thread: RunInThread, now: int) -> None:
        """Computes large permissions in a thread, while other requests are served: `effective` is quick afterwards."""
        await self.compute_in_thread(run_in_thread, "effective", now, lambda facts: facts.effective(now))

    async def compute_in_thread(
        self, run_in_thread: RunInThread, name: object, now: int, compute: Callable[["LoadedFacts"], object]
    ) -> None:
        """Calls ``compute``, which remembers a value under this name, with a copy of the facts. Keeps the value."""
        if not self.memo.has(name, now):
            copy = replace(self, memo=self.memo.copy())
            await run_in_thread(compute, copy)
            self.memo.adopt(copy.memo)

    async def compute(self, run_in_thread: RunInThread, now: int, function: Callable[["LoadedFacts"], T]) -> T:
        """Returns ``function(facts)``, called in a thread if the permissions of that moment are large."""
        if not self.is_large:
            return function(self)
        await self.prepare(run_in_thread, now)
        result: T = await run_in_thread(function, replace(self, memo=self.memo.copy()))
        return result

    def remember(self, name: object, now: int, compute: Callable[[], T]) -> T:
        """Returns the value of ``compute()``, which must depend only on the facts and the time, and must not be
        changed."""
        memo = self.memo
        if not memo.since <= now < memo.until:
            memo.clear()
            memo.since, memo.until = now, valid_until(self.application, self.facts, now)
        try:
            return cast(T, memo.values[name])
        except KeyError:
            value = compute()
            memo.add(name, value)
            return value

    def effective(self, now: int) -> EffectivePermissions:
        """Returns the user's permissions at the application."""
        computed = self.remember("effective", now, lambda: compute_permissions(self.application, self.facts, now))
        if computed.now != now:
            computed = self.memo.values["effective"] = replace(computed, now=now)
        return computed

    def secret_rights(self, now: int) -> SecretRights:
        """Returns the user's rights in secret_data of the application.

        Rights over the data of others are administrative, and guests and test players have none.
        """
        is_banned = self.facts.bans and self.facts.ban(self.application.application_id, now)
        if is_banned or self.facts.user.cannot_administer:
            return self.rights_of_everyone(now)
        return self.remember("secret_rights", now, lambda: secret_rights(self.application.schema, self.facts.own, now))

    def rights_of_everyone(self, now: int) -> SecretRights:
        """Returns the rights in secret_data that the application gives to all users, without those of the user's own
        record."""
        schema = self.application.schema
        return self.remember("rights_of_everyone", now, lambda: secret_rights(schema, OwnRecord(), now))

    def render(self, list_type: str, now: int) -> Any:
        """Returns the user's permissions as one of `LIST_TYPES`, with all sections and projects."""
        return render(list_type, self.application, self.facts, self.effective(now))

    def explain(self, rule: str, now: int) -> dict[str, Any]:
        """Returns the sources of a rule that the user has, or the most likely reasons why the user does not have it."""
        return explain_rule(self.application, self.facts, self.effective(now), rule)

    def explain_all(self, now: int) -> dict[str, Any]:
        """Returns the explanation of every rule that the user has, by its name in ``list``."""
        return explain_all(self.application, self.facts, self.effective(now), DEFAULT_OPTIONS)
