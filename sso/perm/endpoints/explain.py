"""``options.explain`` of a meta/data get, as far as the caller may see it."""

from typing import Any

from sso.perm.authorization import CallerRights, missing_sections
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.explanation.explain import explain_all, explain_rule
from sso.perm.engine.explanation.redaction import redact_explanation
from sso.perm.engine.explanation.rule_name import ProjectRule, parse_rule_name
from sso.perm.engine.operations import Operation
from sso.perm.engine.render import Options
from sso.perm.stores.facts import LoadedFacts


def explained(
    asked: bool | str,
    standing: CallerRights,
    user: LoadedFacts,
    effective: EffectivePermissions,
    options: Options,
    *,
    short: bool,
) -> dict[str, Any]:
    """The member ``explain`` of the answer, if it was asked for: of all rules, or of the one that was named."""
    if asked is False:
        return {}
    sections = options.sections
    if "roles" not in sections or (isinstance(asked, str) and "private_data" not in sections):
        # A chain names roles, and what gave them.
        raise missing_sections("canRead", {"roles", "private_data"} - sections if isinstance(asked, str) else {"roles"})

    def sees(project_id: str | None) -> bool:
        """Conditions are for callers who may read the list of roles, and for administrators of the project."""
        return standing.may(Operation.ROLE_LIST) or (
            project_id is not None and standing.may(Operation.PROJECT_SAVE, project_id=project_id)
        )

    arguments = (user.application, user.facts, effective)
    if asked is True:
        chains = explain_all(*arguments, options, short=short)
        return {"explain": {name: redact_explanation(chain, user.project_id, sees) for name, chain in chains.items()}}
    chain = explain_rule(*arguments, asked)
    return {"explain": redact_explanation(chain, _project_of(asked, user), sees)}


def _project_of(rule: str, user: LoadedFacts) -> str | None:
    """The project that a rule is about, by its id; for a rule of the application itself, the application's project."""
    name = parse_rule_name(rule)
    if not isinstance(name, ProjectRule):
        return user.project_id
    named = (p.id for p in user.facts.projects if name.project in (p.id, *p.aliases))
    return next(named, name.project)
