"""What a search for the users who have a rule looks for, and which users may have it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from sso.core.field_errors import FieldPath
from sso.db.transaction import Transaction, run_pure
from sso.perm.changes.candidates import Candidates
from sso.perm.engine.compiled_application import CompiledApplication
from sso.perm.engine.explanation.rule_name import ProjectRule, parse_rule_name
from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.render import SourceGroups, entry_params, short_prefix
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID, is_segment
from sso.perm.engine.rule_check import covers_param, find_rule
from sso.perm.engine.rules import LISTED_SECTIONS, latest_end, without_section
from sso.perm.stores import rule_candidates
from sso.perm.stores.loaded_facts import LoadedFacts
from sso.perm.stores.projects import resolve_project_id
from sso.perm.stores.rule_candidates import Attributes, CandidatePage

ALL_SECTIONS = frozenset((*LISTED_SECTIONS, "roles"))


class Reading(NamedTuple):
    """What a caller may read of the permissions of users."""

    sections: frozenset[str]
    # The reason of a rule: from the facts about a user, the name of the rule, and a time.
    explain: Callable[[LoadedFacts, str, int], dict[str, Any]]
    check_past: Callable[[LoadedFacts], None]  # raises Forbidden if the caller may not see this past


EVERYTHING = Reading(ALL_SECTIONS, LoadedFacts.explain, lambda _past: None)


class HolderQuestion(Struct, frozen=True):
    application_id: int
    rule: str  # in the notation of ``list`` or ``list_short``
    project_id: str | None = None  # or an alias
    param: str | None = None  # the rule must cover it
    at: int | None = None  # a moment of the past
    at_path: FieldPath = ("at",)
    after: str = ""  # a user id
    limit: int = 50
    with_reason: bool = False


class HeldRuleAnswer(NamedTuple):
    """A rule that a user has."""

    params: tuple[str, ...]
    expires: int  # Unix seconds; 0 if it never ends
    reason: dict[str, Any] | None = None

    def json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"params": list(self.params), "expires": self.expires or None}
        return shown if self.reason is None else {**shown, "reason": self.reason}


class RuleSearch(Struct, frozen=True):
    """What one request looks for."""

    question: HolderQuestion
    reading: Reading
    name: str  # the canonical name of the rule
    project_id: str  # whose members may have it; empty if it is no rule of a project
    candidates: Candidates
    paths: tuple[str, ...] = ()  # of the rule, with its sections, if it is no rule of a project

    def find(self, user: LoadedFacts, now: int) -> HeldRuleAnswer | None:
        groups = find_rule(user.effective(now), self.name, self.reading.sections)
        explain = self.reading.explain if self.question.with_reason else None
        if groups is None or not covers_param(groups, self.question.param):
            return None
        return held_rule(groups, user, self.name, now, explain)


def held_rule(
    groups: SourceGroups,
    user: LoadedFacts,
    name: str,
    now: int,
    explain: Callable[[LoadedFacts, str, int], dict[str, Any]] | None,
) -> HeldRuleAnswer:
    ends = latest_end(source.ends for sources in groups for source in sources)
    return HeldRuleAnswer(entry_params(groups), ends, explain(user, name, now) if explain else None)


async def past_candidates(
    tx: Transaction, question: HolderQuestion, reading: Reading, at: int, then: LoadedFacts, after: str
) -> tuple[RuleSearch, CandidatePage] | None:
    """The present users, and all whose data was changed since: of these, the present says nothing."""
    search = await begin_search(tx, question, reading, then.application, then.facts.home)
    if search is None:
        return None
    if then.facts.home is not None:
        group_ids = [group.id for group in then.facts.home.groups]
        search.candidates.users |= await rule_candidates.group_members(tx, group_ids)
    limit = question.limit + 1
    pages = [await next_candidates(tx, search, after), await rule_candidates.changed_page(tx, at, after, limit)]
    return search, rule_candidates.merge_pages(pages)


async def begin_search(
    tx: Transaction,
    question: HolderQuestion,
    reading: Reading,
    application: CompiledApplication,
    home: ProjectFacts | None,
) -> RuleSearch | None:
    """Returns None if the question names a project that the application does not belong to: nobody has the rule."""
    name, nobody = question.rule, Candidates(question.application_id)
    is_central = question.application_id == CENTRAL_APPLICATION_ID
    if question.project_id is not None:
        if not is_central and (home is None or not home.is_named(question.project_id)):
            return None
        name = f"{question.project_id}/{name}" if is_central else name
    rule = parse_rule_name(name)
    if isinstance(rule, ProjectRule):
        if not is_central or not is_segment(rule.project):
            return None
        project_id = await resolve_project_id(tx, rule.project)
        name = short_prefix(project_id, rule.level, rule.resource) + rule.rule
        return RuleSearch(question, reading, name, project_id, nobody)
    candidates = await run_pure(tx, application.is_large, may_have, application, home, rule.paths)
    return RuleSearch(question, reading, name, "", candidates, rule.paths)


def may_have(application: CompiledApplication, home: ProjectFacts | None, paths: Sequence[str]) -> Candidates:
    """Returns the users who may have a rule with one of these paths, without those who have it in their own data."""
    candidates = Candidates(application.application_id)
    candidates.everyone = any(path in application.schema_rules for path in paths)
    giving = {
        role.name for role in application.roles.values() if any(one.listed and one.path in paths for one in role.rules)
    }
    for name in giving:
        candidates.add_role(application.roles[name])
    candidates.add_grants(home, giving)
    return candidates


async def next_candidates(tx: Transaction, search: RuleSearch, after: str) -> CandidatePage:
    """Returns the next candidates of all sources, at least as many as a page has users, unless there are fewer."""
    limit, candidates, application_id = search.question.limit + 1, search.candidates, search.question.application_id
    if search.project_id:
        return await rule_candidates.members_page(tx, search.project_id, after, limit)
    if candidates.everyone:
        return await rule_candidates.users_page(tx, after, limit)
    pages = [rule_candidates.listed_page(candidates.users, after, limit)]
    if candidates.roles:
        pages.append(await rule_candidates.holders_page(tx, application_id, candidates.roles, after, limit))
    if candidates.attributes:
        attributes = Attributes(*(_values(candidates, kind) for kind in ("tag", "purchase", "domain")))
        pages.append(await rule_candidates.attributes_page(tx, attributes, after, limit))
    own_path = without_section(search.paths[0]).split(".")
    pages.append(await rule_candidates.own_entries_page(tx, application_id, own_path, after, limit))
    return rule_candidates.merge_pages(pages)


def _values(candidates: Candidates, kind: str) -> list[str]:
    return [value for other, value in candidates.attributes if other == kind]
