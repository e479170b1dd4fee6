"""Authorization: the rights of the caller of a request, and the check whether they suffice for an operation."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sso.core.errors import Forbidden, NotFound
from sso.core.net import Address
from sso.perm.caller import Caller
from sso.perm.engine.effective_permissions import EffectivePermissions, no_permissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.management_rights import APPLICATION_RIGHTS, MANAGEMENT_RIGHTS
from sso.perm.engine.required_rights import Operation, is_allowed, join_alternatives, missing_rights
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rights import META_NAMES, Rights
from sso.perm.engine.secret_rights import NO_SECRET_RIGHTS, SecretRights
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.telemetry.counters import PERMISSION_CHECKS


class CallerRights(NamedTuple):
    """The rights of the caller. They include those at the target, the application that the request is about."""

    granted: Rights
    target_facts: LoadedFacts | None = None  # of the caller; None if the request has no target or it does not exist
    in_management: bool = False

    @property
    def is_root(self) -> bool:
        return self.granted.is_root

    @property
    def target(self) -> LoadedFacts:
        """The target application. Only root learns that it does not exist; other callers get Forbidden."""
        if self.target_facts is None:
            if self.is_root:
                raise NotFound("application not found")
            raise Forbidden
        return self.target_facts

    def refusal(self, operation: Operation) -> Forbidden:
        """Returns the error for an operation that the caller may not do.

        It is the same whether or not the object exists.
        """
        return Forbidden(missing_rights(operation, in_management=self.in_management))

    def allow(self, operation: Operation, **target: Any) -> bool:
        return is_allowed(operation, self.granted, **target)

    def require(
        self,
        operation: Operation,
        *,
        project_id: str | None = None,
        application_id: int | None = None,
        group_id: str | None = None,
    ) -> None:
        if not self.allow(operation, project_id=project_id, application_id=application_id, group_id=group_id):
            raise self.refusal(operation)

    def require_on_target(self, operation: Operation, *, allow_removed: bool = False) -> LoadedFacts:
        """Requires an operation on the target application. The application and its project must not be removed."""
        if self.target_facts is None and not self.is_root:
            raise self.refusal(operation)
        target = self.target
        self.require(operation, project_id=target.project_id, application_id=target.application.application_id)
        if target.is_removed and not allow_removed:
            raise Forbidden("removed")
        return target


class Authorizer:
    def __init__(self, facts: FactsReader) -> None:
        self.facts = facts

    def with_facts(self, facts: FactsReader | None) -> "Authorizer":
        """Returns the authorizer of a request that has facts of its own."""
        return self if facts is None else Authorizer(facts)

    async def is_root(self, caller: Caller) -> bool:
        """Returns whether the caller has every right."""
        if not caller.user_id:
            return caller.is_operator
        central = await self.facts.load(caller.user_id, CENTRAL_APPLICATION_ID, caller.connection_address)
        assert central is not None
        if central.is_large:
            await central.prepare(self.facts.run_in_thread, caller.now)
        return rights_of(caller, central.effective(caller.now)).is_root

    async def user_facts(self, caller: Caller) -> PermissionFacts:
        """Returns the facts about the user at the central application."""
        central = await self.facts.load(caller.user_id, CENTRAL_APPLICATION_ID, caller.connection_address)
        assert central is not None
        return central.facts

    async def caller_rights(self, caller: Caller, application_id: int | None = None) -> CallerRights:
        """Returns the rights of the caller. ``application_id`` is the target of the request, if it has one.

        Raises Forbidden if the caller's credentials are not valid for the target.
        """
        # An address that an application signed counts at that application only. At the central application it could
        # make conditions of roles hold that give rights over the whole service.
        addresses: dict[int, Address | None] = {CENTRAL_APPLICATION_ID: caller.connection_address}
        if application_id is not None:
            addresses[application_id] = caller.address
        loaded = await self.facts.load_many(caller.user_id, addresses)
        for facts in loaded.values():
            if facts is not None and facts.is_large:
                await facts.prepare(self.facts.run_in_thread, caller.now)
        central = loaded[CENTRAL_APPLICATION_ID]
        assert central is not None
        effective = central.effective(caller.now)
        PERMISSION_CHECKS.add("caller")
        target = loaded[application_id] if application_id is not None else None
        _check_credentials(caller, application_id, target)
        secret, service = NO_SECRET_RIGHTS, False
        if target is not None:
            secret = secret_rights_of(caller, target)
            service = _is_service_of(caller, target)
        rights = rights_of(caller, effective, application_id, secret, service=service)
        return CallerRights(rights, target, caller.in_management)


def secret_rights_of(caller: Caller, application: LoadedFacts) -> SecretRights:
    """Returns the rights of a caller in secret_data of an application; without the second factor that the service
    requires, those of everyone."""
    read = application.rights_of_everyone if caller.second_factor_missing else application.secret_rights
    return read(caller.now)


def rights_of(
    caller: Caller,
    effective: EffectivePermissions,
    application_id: int | None = None,
    secret: SecretRights = NO_SECRET_RIGHTS,
    *,
    service: bool = False,
) -> Rights:
    """Returns the rights of a caller with these permissions at the central application. ``application_id`` is the
    target.

    Without the second factor that the service requires, a caller has the rights of a user who was given none.
    """
    if caller.second_factor_missing:
        effective = no_permissions(effective.application_id, caller.now)
    rights = Rights(effective, secret, service, is_operator=caller.is_operator)
    if not caller.in_management:
        return rights
    management = rights.root_rules & MANAGEMENT_RIGHTS
    if application_id == CENTRAL_APPLICATION_ID:
        management -= APPLICATION_RIGHTS
    return rights._replace(management=management)


def missing_sections(right: str, sections: Collection[str]) -> Forbidden:
    """Returns the error for a caller without ``right`` on these sections of a user's record.

    Without ``sections``, the text says that the right on any section is sufficient.
    """
    words = dict.fromkeys(word for section, word in META_NAMES.items() if not sections or section in sections)
    return Forbidden(f"{right} of {', '.join(words) if sections else join_alternatives(list(words))} is required")


def _check_credentials(caller: Caller, application_id: int | None, target: LoadedFacts | None) -> None:
    """Raises Forbidden if a service JWT or an access key that replaces the factor is not valid for the application."""
    if caller.key is not None and caller.key.application_id != application_id:
        raise Forbidden("an access key is valid for its own application only")
    if caller.has_factor or caller.key_replaces_factor:
        return
    is_own = caller.service_id is not None and caller.service_id == application_id
    if not is_own and (caller.is_site or target is None or not _is_service_of(caller, target)):
        raise Forbidden("the service JWT is valid for its own application and those of its project only")


def _is_service_of(caller: Caller, target: LoadedFacts) -> bool:
    """Returns whether the caller has a service JWT of the target application, or of another one of its project."""
    if caller.service_id is None:
        return False
    if caller.service_id == target.application.application_id:
        return True
    home = target.facts.home
    return home is not None and any(item.id == caller.service_id and not item.removed for item in home.applications)
