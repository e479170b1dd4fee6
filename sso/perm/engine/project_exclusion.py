"""Whether a project excludes a user, so that neither memberships nor grants of the project take effect."""

from enum import Enum

from sso.perm.engine.facts import ProjectFacts
from sso.perm.engine.groups import groups_with_member
from sso.perm.engine.time_windows import TimeBound, When
from sso.perm.engine.user_facts import UserFacts


class ProjectExclusion(Enum):
    """Why a project excludes a user."""

    REMOVED = "the project is removed"
    DOMAIN = "the login domain is not among allowed_domains"
    DISALLOW = "the user is in a group of the disallow list"
    ALLOW = "the user is in no group of the allow list"


def project_exclusion(project: ProjectFacts, user: UserFacts, when: When) -> ProjectExclusion | None:
    """Returns None if the user has access through the project.

    With a `TimeBound`, None means that the user has access at some time, or all the time.
    """
    if project.removed:
        return ProjectExclusion.REMOVED
    if project.allowed_domains and user.domain not in project.allowed_domains:
        return ProjectExclusion.DOMAIN
    when_excluded = when.opposite if isinstance(when, TimeBound) else when
    if project.disallow and groups_with_member(project, project.disallow, user, when_excluded):
        return ProjectExclusion.DISALLOW
    if project.allow and not groups_with_member(project, project.allow, user, when):
        return ProjectExclusion.ALLOW
    return None
