"""Random worlds for the property tests: few names, so that everything meets everything."""

from typing import Any

from hypothesis import strategies as st

from tests.perm.world import GROUP_A, GROUP_B, GROUP_C, NOW

NAMES = ("a", "b-c", "project", "app", "srv", "group", "can_create_projects")
VALUES = (True, True, True, False, None, 0, 1, "", "self", 0.0, 2.5)
PARAMS = ("", "p", "q, p", "3", "5,abc", " 7 ", "ü")
MOMENTS = (0, 1, NOW - 1, NOW, NOW + 1, NOW + 60)
ROLE_NAMES = ("default", "admin", "Zed", "r1", "r2", "root")
GROUPS = (GROUP_A, GROUP_B, GROUP_C)
DOMAINS = ("example.com", "EXAMPLE.com", "other.org", "com")
TAGS = ("t1", "t2")
IPS = ("10.0.0.0/8", "10.1.2.3", "0.0.0.0/0", "::/0", "fd00::/8", "::ffff:10.0.0.0/104", "10.1.2.4/31")
IDS = ("1001", "1002", "2")

# A world without anything in it.
NOTHING: dict[str, Any] = {
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


def objects(required: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required)


def some(items: tuple[Any, ...], most: int = 3) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(items), max_size=most, unique=True)


def trees(*, own: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    optional = {"params": st.sampled_from(PARAMS)} | ({"expired": st.sampled_from(MOMENTS)} if own else {})
    rule = st.fixed_dictionaries({"value": st.sampled_from(VALUES)}, optional=optional)
    names = st.sampled_from(NAMES)
    below = st.dictionaries(names, st.one_of(rule, rule, st.dictionaries(names, rule, max_size=2)), max_size=3)
    return st.dictionaries(names, st.one_of(rule, below), max_size=4)


def conditions(*, ip: bool) -> st.SearchStrategy[dict[str, Any]]:
    leaves = {
        "domain": st.sampled_from(DOMAINS),
        "uid": some(IDS),
        "tag": st.sampled_from(TAGS),
        "purchase": st.sampled_from(TAGS),
        "everyone": st.booleans(),
    } | ({"ip": st.sampled_from(IPS)} if ip else {})
    one = st.sampled_from(sorted(leaves)).flatmap(lambda name: objects({name: leaves[name]}))
    leaf = st.one_of(one, st.fixed_dictionaries({}, optional=leaves))
    return st.recursive(
        leaf,
        lambda inner: st.fixed_dictionaries(
            {}, optional={**leaves, "and": st.lists(inner, max_size=3), "or": st.lists(inner, max_size=3)}
        ),
        max_leaves=6,
    )


def assignments(most: int = 3) -> st.SearchStrategy[list[Any]]:
    limited = st.fixed_dictionaries(
        {"name": st.sampled_from(ROLE_NAMES)},
        optional={"expired": st.sampled_from(MOMENTS), "ttl": st.sampled_from((0, 30, 90))},
    )
    item = st.one_of(st.sampled_from(ROLE_NAMES), limited)
    return st.lists(item, max_size=most, unique_by=lambda item: item if isinstance(item, str) else item["name"])


def roles() -> st.SearchStrategy[list[dict[str, Any]]]:
    generic = st.fixed_dictionaries({}, optional={name: trees() for name in ("project", "app", "srv", "group")})
    sections = st.one_of(
        st.fixed_dictionaries({}, optional={"private_data": trees(), "public_data": trees()}),
        st.fixed_dictionaries({"private_data": generic}),
    )
    rarely = st.sampled_from((False, False, False, True))
    role = objects(
        {
            "name": st.sampled_from(ROLE_NAMES),
            "meta": sections,
            "protected": rarely,
            "default": rarely,
            "condition": st.one_of(st.just({}), st.just({}), conditions(ip=True)),
            "params": st.sampled_from(PARAMS),
        }
    )
    return st.lists(role, max_size=5, unique_by=lambda role: role["name"])


def projects(project_id: str) -> st.SearchStrategy[dict[str, Any]]:
    group = objects(
        {
            "id": st.sampled_from(GROUPS),
            "users": some(IDS, 1),
            "conditions": st.lists(objects({"title": st.just("c"), "condition": conditions(ip=False)}), max_size=2),
        }
    )
    action = objects(
        {
            "group_id": st.sampled_from(GROUPS),
            "role": st.sampled_from(ROLE_NAMES),
            "action": st.sampled_from(("grant", "grant", "revoke")),
        }
    )
    application = objects({"removed": st.booleans(), "is_service": st.booleans()})
    seldom = st.one_of(st.just([]), st.just([]), some(GROUPS, 2))
    return objects(
        {
            "id": st.just(project_id),
            "aliases": st.just([f"{project_id}_alias"]),
            "removed": st.sampled_from((False, False, False, True)),
            "settings": objects(
                {
                    "allowed_domains": st.one_of(st.just([]), st.just([]), some(DOMAINS)),
                    "services": st.dictionaries(
                        st.sampled_from(("10", "11")), objects({"groups": st.lists(action, max_size=3)}), max_size=2
                    ),
                }
            ),
            "allow": seldom,
            "disallow": seldom,
            "groups": st.lists(group, max_size=3, unique_by=lambda group: group["id"]),
            "applications": st.tuples(application, application).map(
                lambda pair: [{"id": 10 + at, **item} for at, item in enumerate(pair)]
            ),
            "member": st.fixed_dictionaries(
                {},
                optional={
                    "project": assignments(2),
                    "applications": st.dictionaries(st.sampled_from(("10", "11", "12")), assignments(2), max_size=2),
                    "services": st.dictionaries(st.sampled_from(("10", "11")), assignments(2), max_size=2),
                    "groups": st.dictionaries(st.sampled_from(GROUPS), assignments(2), max_size=2),
                },
            ),
        }
    )


def users() -> st.SearchStrategy[dict[str, Any]]:
    return objects(
        {
            "user_id": st.sampled_from(IDS),
            "login": st.sampled_from(
                ("u@example.com", "u@Example.COM", "a@b@other.org", "x@evilexample.com", "example.com")
            ),
            "tags": some(TAGS),
            "purchases": some(TAGS),
            "ip": st.sampled_from(
                ("10.1.2.3", "10.1.2.5", "8.8.8.8", "::ffff:10.1.2.3", "fd00::1", "2001:db8::1", None)
            ),
        }
    )


def worlds() -> st.SearchStrategy[dict[str, Any]]:
    own = objects({"roles": assignments(), "private_data": trees(own=True), "public_data": trees(own=True)})
    central = objects(
        {"application_id": st.just(1), "home": st.none(), "projects": st.tuples(projects("p1"), projects("p2"))}
    )
    other = objects(
        {"application_id": st.just(10), "home": st.one_of(st.none(), projects("p1")), "projects": st.just(())}
    )
    common = objects(
        {
            "schema": st.fixed_dictionaries({}, optional={"private_data": trees(), "public_data": trees()}),
            "roles": roles(),
            "user": users(),
            "own": own,
            "removed": st.sampled_from((False,) * 9 + (True,)),
            "now": st.just(NOW),
        }
    )
    return st.tuples(common, st.one_of(central, other)).map(lambda pair: pair[0] | pair[1])


def options() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "project_id": st.sampled_from(("p1", "p2_alias", "nope")),
            "hide_project_access": st.booleans(),
            "with_exp": st.booleans(),
        },
    )
