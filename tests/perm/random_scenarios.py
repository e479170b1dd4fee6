"""Random scenarios for the property tests, with few names, so that their parts often refer to each other.

Hypothesis chooses a seed and a size, and the generator derives the scenario from them. Scenarios that Hypothesis draws
piece by piece are too poor: grants, revokes and memberships rarely meet in one. A failure shrinks to the smallest size
that still shows it.
"""

from random import Random
from typing import Any

from hypothesis import note
from hypothesis import strategies as st

from tests.perm.evaluation import GROUP_A, GROUP_B, GROUP_C, NOW

NAMES = ("a", "can_create_projects", "b-c", "app")
GENERIC = ("project", "app", "srv", "group")
VALUES = (True, True, True, True, True, False, False, None, 0, 1, "", "self", 0.0, 2.5)
PARAMS = ("", "", "", "p", "q, p", "3", "5,abc", " 7 ", "ü")
MOMENTS = (0, 0, 0, 1, NOW - 1, NOW, NOW + 1, NOW + 60, NOW + 90)
TTLS = (0, 0, 30, 90)
ROLE_NAMES = ("default", "admin", "Zed", "r1", "r2", "r3", "root")
GROUPS = (GROUP_A, GROUP_B, GROUP_C)
DOMAINS = ("example.com", "EXAMPLE.com", "other.org", "com", "straße.de", "strasse.de", "xn--strae-oqa.de")
TAGS = ("t1", "t2")
IPS = ("10.0.0.0/8", "10.1.2.3", "0.0.0.0/0", "::/0", "fd00::/8", "::ffff:10.0.0.0/104", "10.1.2.4/31")
ADDRESSES = ("10.1.2.3", "10.1.2.3", "10.1.2.5", "8.8.8.8", "::ffff:10.1.2.3", "fd00::1", "2001:db8::1", None)
# NOW is a Tuesday, 22:13:20 in UTC.
TIMES: tuple[dict[str, Any], ...] = (
    {},
    {"zone": "Asia/Tokyo"},
    {"from": NOW},
    {"from": NOW + 100},
    {"until": NOW},
    {"until": NOW + 100},
    {"from": NOW - 90_000, "until": NOW + 90_000, "weekly": [{"days": ["tue"]}]},
    {"weekly": [{"from": "22:00", "to": "02:00"}]},
    {"weekly": [{"days": ["mon"], "from": "22:14", "to": "22:13"}], "zone": "UTC"},
    {"weekly": [{"days": ["sat", "sun"], "from": "10:00", "to": "22:00"}], "zone": "Europe/Berlin"},
    {"weekly": [{"days": ["wed"], "to": "08:00"}, {"days": ["tue", "wed"], "from": "07:00"}], "zone": "Asia/Tokyo"},
)
IDS = ("1001", "1001", "1002", "2")
LOGINS = (
    *("u@example.com", "u@example.com", "u@Example.COM", "a@b@other.org", "x@evilexample.com", "example.com"),
    *("u@STRASSE.de", "u@straße.de", "u@XN--strae-oqa.DE"),
)
# A scenario without roles, rules and projects.
EMPTY_SCENARIO: dict[str, Any] = {
    "application_id": 10,
    "schema": {},
    "roles": [],
    "user": {},
    "own": {"roles": []},
    "removed": False,
    "home": None,
    "projects": [],
    "now": NOW,
}


class ScenarioGenerator:
    def __init__(self, seed: int, size: int) -> None:
        self.random = Random(seed)
        self.size = size

    def sometimes(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, items: tuple[Any, ...]) -> Any:
        return self.random.choice(items)

    def some(self, items: tuple[Any, ...], most: int) -> list[Any]:
        different = tuple(dict.fromkeys(items))
        return self.random.sample(different, self.random.randint(0, min(most, self.size, len(different))))

    def most(self, items: tuple[Any, ...]) -> list[Any]:
        """Nearly all items, in a scenario of full size."""
        return self.random.sample(items, min(self.size, self.random.randint(len(items) // 2 + 1, len(items))))

    def tree(self, *, own: bool = False, names: tuple[str, ...] = NAMES, depth: int = 0) -> dict[str, Any]:
        return {
            name: self.rule(own=own)
            if depth == 2 or (self.sometimes(0.7) and name not in GENERIC)
            else self.tree(own=own, names=names, depth=depth + 1)
            for name in self.some(names, 4)
        }

    def rule(self, *, own: bool) -> dict[str, Any]:
        node = {"value": self.one(VALUES)}
        if self.sometimes(0.5):
            node["params"] = self.one(PARAMS)
        if own and self.sometimes(0.5):
            node["expired"] = self.one(MOMENTS)
        return node

    def data(self, *, own: bool = False) -> dict[str, Any]:
        return {section: self.tree(own=own) for section in self.some(("private_data", "public_data"), 2)}

    def public_writing(self) -> dict[str, Any]:
        """``secret_data`` that says who may write the public data of users."""
        if self.sometimes(0.5):
            return {}
        level = self.one(("self", "all", "none"))
        return {"secret_data": {"meta": {"public": {"canWrite": {"value": level}}}}}

    def condition(self, *, ip: bool, depth: int = 0) -> dict[str, Any]:
        members = ("domain", "uid", "tag", "purchase", "time", "everyone", "and", "or", *(("ip", "ip") if ip else ()))
        found: dict[str, Any] = {}
        for name in self.some(members, 2):
            if name in ("and", "or"):
                parts = self.random.randint(0, 3) if depth < 3 else 0
                found[name] = [self.condition(ip=ip, depth=depth + 1) for _ in range(parts)]
            else:
                found[name] = self.asked(name)
        return found

    def asked(self, name: str) -> Any:
        match name:
            case "domain":
                return self.one(DOMAINS)
            case "uid":
                return self.some(IDS, 3)
            case "ip":
                return self.one(IPS)
            case "time":
                return self.one(TIMES)
            case "everyone":
                return self.sometimes(0.7)
        return self.one(TAGS)

    def assignments(self, most: int = 3) -> list[Any]:
        found: list[Any] = []
        for name in self.some(ROLE_NAMES, most):
            limited = {"name": name, "expired": self.one(MOMENTS), "ttl": self.one(TTLS)}
            found.append(limited if self.sometimes(0.5) else name)
        return found

    def role(self, name: str, *, generic: bool) -> dict[str, Any]:
        sections = {section: self.tree(depth=1) for section in GENERIC}
        return {
            "name": name,
            "meta": {"private_data": sections} if generic else self.data(),
            "protected": self.sometimes(0.15),
            "default": self.sometimes(0.1),
            "condition": self.condition(ip=True) if self.sometimes(0.4) else {},
            "params": self.one(PARAMS),
        }

    def group(self, group_id: str) -> dict[str, Any]:
        conditions = [{"title": "c", "condition": self.condition(ip=False)} for _ in range(self.random.randint(0, 2))]
        return {"id": group_id, "users": self.some(IDS, 1), "conditions": conditions}

    def project(self, project_id: str) -> dict[str, Any]:
        actions = [
            {
                "group_id": self.one(GROUPS),
                "role": self.one(ROLE_NAMES),
                "action": self.one(("grant", "grant", "revoke")),
            }
            for _ in range(self.random.randint(0, 2 * self.size))
        ]
        applications = [
            {"id": 10 + at, "removed": self.sometimes(0.2), "is_service": self.sometimes(0.5)} for at in range(2)
        ]
        return {
            "id": project_id,
            "aliases": [f"{project_id}_alias"],
            "removed": self.sometimes(0.1),
            "settings": {
                "allowed_domains": self.some(DOMAINS, 3) if self.sometimes(0.2) else [],
                "services": {str(application): {"groups": actions} for application in self.most((10, 11))},
            },
            "allow": self.some(GROUPS, 2) if self.sometimes(0.2) else [],
            "disallow": self.some(GROUPS, 1) if self.sometimes(0.2) else [],
            "groups": [self.group(group_id) for group_id in self.most(GROUPS)],
            "applications": applications,
            "member": {
                "project": self.assignments(2),
                "applications": {key: self.assignments(2) for key in self.some(("10", "11", "12"), 2)},
                "services": {key: self.assignments(2) for key in self.some(("10", "11"), 2)},
                "groups": {key: self.assignments(2) for key in self.some(GROUPS, 2)},
            },
        }

    def user(self) -> dict[str, Any]:
        return {
            "user_id": self.one(IDS),
            "login": self.one(LOGINS),
            "tags": self.some(TAGS, 2),
            "purchases": self.some(TAGS, 2),
            "ip": self.one(ADDRESSES),
        }

    def scenario(self) -> dict[str, Any]:
        central = self.sometimes(0.5)
        return {
            "application_id": 1 if central else 10,
            "schema": {**self.data(), **self.public_writing()},
            "roles": [self.role(name, generic=central and self.sometimes(0.7)) for name in self.most(ROLE_NAMES)],
            "user": self.user(),
            "own": {"roles": self.assignments(4), **self.data(own=True), **self.public_writing()},
            "removed": self.sometimes(0.03),
            "home": self.project("p1") if not central and self.sometimes(0.8) else None,
            "projects": [self.project("p1"), self.project("p2")] if central else [],
            "now": NOW,
        }

    def options(self) -> dict[str, Any]:
        chosen = {
            "project_id": self.one(("p1", "p2_alias", "nope")),
            "hide_project_access": True,
            "with_exp": True,
        }
        return {name: value for name, value in chosen.items() if self.sometimes(0.3)}


def scenario_generators() -> st.SearchStrategy[ScenarioGenerator]:
    def make(size: int, seed: int) -> ScenarioGenerator:
        note(f"seed {seed}, size {size}")
        return ScenarioGenerator(seed, size)

    return st.builds(make, st.sampled_from((1, 2, 3, 7, 7, 7, 7, 7)), st.integers(0, 2**32))


def scenarios() -> st.SearchStrategy[dict[str, Any]]:
    return scenario_generators().map(ScenarioGenerator.scenario)
