"""The facts for the questions of a request, as new as the request demands."""

from sso.change_stream.revisions import Revisions
from sso.perm.read_ahead import PrefetchedLookup
from sso.perm.stores.cached_facts import CachedFacts, PrefetchedFacts
from sso.web.client_connection import hold_request


class QuestionFacts:
    def __init__(self, facts: CachedFacts, revisions: Revisions) -> None:
        self._facts = facts
        self.revisions = revisions

    async def can_read_ahead(self, demanded: int) -> bool:
        """Returns whether facts that are read now are new enough. A caller who has to wait is authenticated first."""
        return self.revisions.is_reached(demanded) or await self.revisions.read() >= demanded

    async def open(self, lookup: PrefetchedLookup | None, demanded: int) -> PrefetchedFacts:
        """Raises RevisionNotReached if the facts are not new enough within some seconds."""
        if lookup is not None:
            return lookup.facts
        await self.revisions.wait(demanded, hold_request)
        return PrefetchedFacts(self._facts, {})
