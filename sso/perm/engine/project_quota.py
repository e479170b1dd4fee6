"""The number of projects that a user may create (§5.6)."""

import re

from sso.perm.engine.effective_permissions import EffectivePermissions
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rules import RuleSource

CAN_CREATE_PROJECTS = "private_data.can_create_projects"

_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)


def project_quota(effective: EffectivePermissions) -> int | None:
    """The maximum number of projects: None if there is no limit, 0 if the user lacks the rule.

    The highest limit of all sources applies. Each source counts by itself, before parameters merge: after merging, the
    "3" of one role would limit another role that is unlimited. A parameter that is not a number means 0.
    """
    if effective.application_id != CENTRAL_APPLICATION_ID:
        return 0
    quotas = [_source_quota(source) for source in effective.rules.get(CAN_CREATE_PROJECTS, ())]
    return None if None in quotas else max((quota for quota in quotas if quota is not None), default=0)


def _source_quota(source: RuleSource) -> int | None:
    if not source.params:
        return None
    return max(int(param) if _NUMBER.fullmatch(param) else 0 for param in source.params)
