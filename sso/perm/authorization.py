"""Where a caller stands: what the engine says about the caller, and whether that suffices for an operation."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import trio

from sso.core.errors import Forbidden, NotFound
from sso.db.errors import DatabaseError
from sso.perm.caller import Caller
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.names import CENTRAL_APPLICATION_ID
from sso.perm.engine.operations import Operation, is_allowed, join_alternatives, missing_rights
from sso.perm.engine.rights import META_WORDS, Rights, secret_rights
from sso.perm.stores.facts import FactsStore, LoadedFacts


@dataclass(frozen=True)
class CallerRights:
    rights: Rights
    central: LoadedFacts  # the caller at the central application
    at: LoadedFacts | None = None  # the caller at the application that the call is about, if there is one

    @property
    def application(self) -> LoadedFacts:
        """The application that the call is about. Whether there is none is told only to those who may see them all."""
        if self.at is None:
            if self.rights.is_root:
                raise NotFound("application not found")
            raise Forbidden
        return self.at

    def missing(self, operation: Operation) -> Forbidden:
        """The refusal of an operation: the same whether or not there is what it is about."""
        return Forbidden(missing_rights(operation))

    def require(
        self,
        operation: Operation,
        *,
        project_id: str | None = None,
        application_id: int | None = None,
        group_id: str | None = None,
    ) -> None:
        if not self.may(operation, project_id=project_id, application_id=application_id, group_id=group_id):
            raise self.missing(operation)

    def may(self, operation: Operation, **target: Any) -> bool:
        return is_allowed(operation, self.rights, **target)

    def require_here(self, operation: Operation) -> None:
        """For an operation on the application of the call. What is removed, or in a removed project, is refused."""
        if self.require_on_record(operation).gone:
            raise Forbidden("removed")

    def require_on_record(self, operation: Operation) -> LoadedFacts:
        """For an operation on the application of the call, which may be removed."""
        if self.at is None and not self.rights.is_root:
            raise self.missing(operation)
        here = self.application
        self.require(operation, project_id=here.project_id, application_id=here.application.application_id)
        return here


class Authorizer:
    def __init__(self, facts: FactsStore) -> None:
        self.facts = facts

    async def standing(self, caller: Caller, application_id: int | None = None) -> CallerRights:
        """Both looks go at once, so that they share a round trip."""
        found: dict[int, LoadedFacts | None] = {}
        failed: list[DatabaseError] = []

        async def look(wanted: int) -> None:
            # An application vouches for addresses of its own clients: they activate no condition of a central role.
            address = caller.address if wanted == application_id else caller.own_address
            try:
                found[wanted] = await self.facts.load(caller.user_id, wanted, address)
            except DatabaseError as error:
                failed.append(error)  # a nursery would wrap it, and the edge knows it bare

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look, CENTRAL_APPLICATION_ID)
            if application_id is not None and application_id != CENTRAL_APPLICATION_ID:
                nursery.start_soon(look, application_id)
        if failed:
            raise failed[0]
        central = found[CENTRAL_APPLICATION_ID]
        assert central is not None
        effective = compute_permissions(central.application, central.facts, caller.now)
        at = found.get(application_id) if application_id is not None else None
        _check_credentials(caller, application_id, at)
        if at is None:
            return CallerRights(Rights(effective), central)
        service = _speaks_for(caller, at)
        secret = secret_rights(at.application.schema, at.facts.own, caller.now)
        return CallerRights(Rights(effective, secret, service), central, at)


def missing_sections(right: str, sections: Collection[str]) -> Forbidden:
    """The refusal to read or write these sections of a user's schema; none means any of them would do."""
    words = dict.fromkeys(word for section, word in META_WORDS.items() if not sections or section in sections)
    return Forbidden(f"{right} of {', '.join(words) if sections else join_alternatives(list(words))} is required")


def _check_credentials(caller: Caller, application_id: int | None, at: LoadedFacts | None) -> None:
    """A service JWT or an access key replaces the factor only where it is valid; the refusal tells nothing else."""
    if caller.key is not None and caller.key.application_id != application_id:
        raise Forbidden("an access key is valid for its own application only")
    if caller.has_factor or caller.key_replaces_factor:
        return
    own = caller.service_id is not None and caller.service_id == application_id
    if not own and (caller.is_site or at is None or not _speaks_for(caller, at)):
        raise Forbidden("the service JWT is valid for its own application and those of its project only")


def _speaks_for(caller: Caller, at: LoadedFacts) -> bool:
    """A service JWT of this application, or of another one of its project."""
    if caller.service_id is None:
        return False
    if caller.service_id == at.application.application_id:
        return True
    home = at.facts.home
    return home is not None and any(item.id == caller.service_id and not item.removed for item in home.applications)
