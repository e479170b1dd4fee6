"""How many projects a user may create (§5.6)."""

import re

from sso.perm.engine.effective import Effective
from sso.perm.engine.rules import RuleSource
from sso.perm.names import CENTRAL_APPLICATION_ID

CAN_CREATE_PROJECTS = "private_data.can_create_projects"

_LIMIT = re.compile(r"[0-9]{1,15}", re.ASCII)


def project_limit(effective: Effective) -> int | None:
    """The most projects; None: no limit. Nobody who lacks the rule may create any.

    Each source counts by itself, before parameters merge: merged, the "3" of one role would limit another that has no
    limit. The highest limit applies, and what is no number never means "unlimited".
    """
    if effective.application_id != CENTRAL_APPLICATION_ID:
        return 0
    limits = [_limit(source) for source in effective.rules.get(CAN_CREATE_PROJECTS, ())]
    return None if None in limits else max((limit for limit in limits if limit is not None), default=0)


def _limit(source: RuleSource) -> int | None:
    if not source.params:
        return None
    return max(int(part) if _LIMIT.fullmatch(part) else 0 for part in source.params)
