"""``options.explain`` of a meta/data get: the parts of an explanation that the caller may see."""

from typing import Any

from sso.perm.authorization import CallerRights, missing_sections
from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.explanation.explain import explain_all, explain_rule
from sso.perm.engine.explanation.redaction import redact_explanation
from sso.perm.engine.explanation.rule_name import ProjectRule, parse_rule_name
from sso.perm.engine.render import Options
from sso.perm.engine.required_rights import Operation
from sso.perm.stores.loaded_facts import LoadedFacts


def explain_json(
    explain: bool | str,
    rights: CallerRights,
    user: LoadedFacts,
    effective: EffectivePermissions,
    options: Options,
    *,
    short: bool,
) -> dict[str, Any]:
    """The member ``explain`` of the response: of all rules if ``explain`` is true, or of the rule that it names."""
    if explain is False:
        return {}
    sections = options.sections
    if "roles" not in sections or (isinstance(explain, str) and "private_data" not in sections):
        # An explanation names roles and how the user came by them.
        raise missing_sections(
            "canRead", {"roles", "private_data"} - sections if isinstance(explain, str) else {"roles"}
        )

    def may_see_conditions(project_id: str | None) -> bool:
        """Callers who may list roles, and administrators of the project, see conditions."""
        return rights.allow(Operation.ROLE_LIST) or (
            project_id is not None and rights.allow(Operation.PROJECT_SAVE, project_id=project_id)
        )

    arguments = (user.application, user.facts, effective)
    if explain is True:
        chains = explain_all(*arguments, options, short=short)
        return {
            "explain": {
                name: redact_explanation(chain, user.project_id, may_see_conditions) for name, chain in chains.items()
            }
        }
    chain = explain_rule(*arguments, explain)
    return {"explain": redact_explanation(chain, _project_of(explain, user), may_see_conditions)}


def _project_of(rule: str, user: LoadedFacts) -> str | None:
    """Returns the id of the project that a rule is about; for a rule of the application itself, the application's
    project."""
    name = parse_rule_name(rule)
    if not isinstance(name, ProjectRule):
        return user.project_id
    matches = (project.id for project in user.facts.projects if project.is_named(name.project))
    return next(matches, name.project)
