"""Which applications or projects let a user do something: those of which a check says so to the same caller."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sso.db.database import Database
from sso.perm.caller import Caller
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.input.questions import Question
from sso.perm.operations.checks import CheckOperations
from sso.perm.stores.applications import read_application_ids
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.memberships import read_project_ids_of

QUESTIONS_AT_ONCE = 50
MAX_QUESTIONS = 500  # of one request


class ResourcePage(NamedTuple):
    ids: Sequence[str]
    next: str | None  # the cursor of the next page; None: there is none


class ResourceSearch:
    def __init__(self, database: Database, checks: CheckOperations) -> None:
        self._database = database
        self._checks = checks

    async def find(
        self, caller: Caller, question: Question, resource_type: str, after: str, limit: int, facts: FactsReader
    ) -> ResourcePage:
        """Returns resources where the answer to the question is true, in the order of their ids.

        A page may have fewer than ``limit``, or none, and a next page.
        """
        found: list[str] = []
        for _ in range(MAX_QUESTIONS // QUESTIONS_AT_ONCE):
            ids = await self._next(caller, question.user_id, resource_type, after)
            questions = [_about(question, resource_type, resource_id) for resource_id in ids]
            answers = await self._checks.answer(caller, questions, facts)
            found += [resource_id for resource_id, answer in zip(ids, answers, strict=True) if answer.is_allowed]
            if len(found) > limit:
                return ResourcePage(found[:limit], found[limit - 1])
            if len(ids) < QUESTIONS_AT_ONCE:
                return ResourcePage(found, None)
            after = ids[-1]
        return ResourcePage(found, after)

    async def _next(self, caller: Caller, user_id: str, resource_type: str, after: str) -> list[str]:
        """Returns the next resources that may be found: for an application's own credentials, that application."""
        if resource_type == "project":
            return await read_project_ids_of(self._database, user_id, after, QUESTIONS_AT_ONCE)
        own = caller.key.application_id if caller.key else caller.service_id
        if own is not None and not caller.user_id:
            return [] if after else [str(own)]
        ids = await read_application_ids(self._database, int(after or 0), QUESTIONS_AT_ONCE)
        return [str(application_id) for application_id in ids]


def _about(question: Question, resource_type: str, resource_id: str) -> Question:
    if resource_type == "project":
        return replace(question, application_id=CENTRAL_APPLICATION_ID, project_id=resource_id)
    return replace(question, application_id=int(resource_id))
