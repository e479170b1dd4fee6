"""Reverse questions: who may do this, and what may this user do. The answers are those of checks.

A caller may ask what a get of the permissions would show, of all users or of one.
"""

from typing import Any

from sso.core.field_errors import FieldError
from sso.db.database import Database
from sso.perm.authorization import Authorizer, missing_sections
from sso.perm.caller import Caller
from sso.perm.engine.render import Options
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rule_check import sections_of
from sso.perm.operations.explain import explain_json
from sso.perm.operations.rule_holders import HolderPage, RuleHolders
from sso.perm.operations.rule_search import ALL_SECTIONS, EVERYTHING, HolderQuestion, Reading
from sso.perm.operations.rules_of_user import RulesOfUser, UserRulesPage, UserRulesQuestion
from sso.perm.operations.user_data import readable_sections, refuse_other_project, require_target
from sso.perm.stores.facts import StoredFacts
from sso.perm.stores.facts_reader import FactsReader
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.telemetry.counters import PERMISSION_CHECKS


class ReverseQuestions:
    def __init__(self, database: Database, authorizer: Authorizer, facts: StoredFacts) -> None:
        self._authorizer = authorizer
        self._holders = RuleHolders(database, facts)
        self._rules = RulesOfUser(database, facts)

    async def who(
        self, caller: Caller, question: HolderQuestion, facts: FactsReader | None = None, *, sees_users: bool = False
    ) -> HolderPage:
        """Returns users who have the rule. ``sees_users``: the caller may read everything about every user.

        To administrators an answer is complete. Other callers get the users of whom a check would say the same.
        """
        reading = EVERYTHING if sees_users else await self._reading(caller, question.application_id, facts)
        sections = sections_of(question.rule)
        hidden = sections - reading.sections
        if hidden and (hidden == sections or caller.in_management):
            raise missing_sections("canRead", hidden)
        PERMISSION_CHECKS.add("who")
        return await self._holders.find(question, reading, caller.subject)

    async def can(
        self,
        caller: Caller,
        question: UserRulesQuestion,
        facts: FactsReader | None = None,
        *,
        sees_users: bool = False,
    ) -> UserRulesPage:
        """Returns rules of the user. Callers who do not see users must name an application."""
        reading = EVERYTHING
        if not sees_users:
            if question.application_id is None:
                raise FieldError(("application_id",), "is required for callers who may not see all users", status=403)
            reading = await self._reading(caller, question.application_id, facts, question.user_id)
        PERMISSION_CHECKS.add("can")
        return await self._rules.find(question, reading, caller.subject)

    async def _reading(
        self, caller: Caller, application_id: int, facts: FactsReader | None, user_id: str = ""
    ) -> Reading:
        """Returns what the caller may read at the application, of one user or of all. Raises Forbidden."""
        authorizer = self._authorizer.with_facts(facts)
        pairs = {(caller.user_id, CENTRAL_APPLICATION_ID), (caller.user_id, application_id)}
        await authorizer.facts.load_pairs(pairs, caller.address)  # this states the revision of the answer
        rights = await authorizer.caller_rights(caller, application_id)
        target = require_target(rights, "canRead", ())
        if not caller.user_id and (caller.key or rights.granted.service):
            sections = ALL_SECTIONS
        else:
            sections = readable_sections(caller, rights, own=bool(user_id) and user_id == caller.user_id)

        def explain(user: LoadedFacts, name: str, now: int) -> dict[str, Any]:
            options = Options(sections=sections)
            explained = explain_json(name, rights, user, user.effective(now), options, short=True)
            reason: dict[str, Any] = explained["explain"]
            return reason

        def check_past(past: LoadedFacts) -> None:
            if not rights.is_root:
                refuse_other_project(target, past)

        return Reading(sections, explain, check_past)
