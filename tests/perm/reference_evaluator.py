"""A second, deliberately simple evaluator: it reads the plain JSON of a scenario and follows the specification rule by
rule, without caches and indexes. It shares no code with the engine.
"""

from ipaddress import ip_address, ip_network
from typing import Any

import idna

from tests.perm import time_reference

LEVELS = {"project": "project", "applications": "app", "services": "srv", "groups": "group"}


class ReferenceEvaluator:
    def __init__(self, parts: dict[str, Any]) -> None:
        self.application_id = parts["application_id"]
        self.schema = parts["schema"]
        self.defined = {role["name"]: role for role in parts["roles"]}
        self.user = parts["user"]
        self.own = parts["own"]
        self.home = parts["home"]
        self.projects = parts["projects"]
        self.now = parts["now"]
        self.removed = parts["removed"] or (self.home is not None and self.home["removed"])

    # Conditions and groups

    def condition(self, condition: dict[str, Any]) -> bool:
        members = {name: value for name, value in condition.items() if self.is_required(name, value)}
        return bool(members) and all(self.member(name, value) for name, value in members.items())

    def is_required(self, name: str, value: Any) -> bool:
        return (name, value) != ("everyone", False) and (name != "time" or bool({*value} - {"zone"}))

    def member(self, name: str, value: Any) -> bool:
        if name == "domain":
            login = self.user["login"]
            return "@" in login and self.a_label(login.split("@")[-1]) == self.a_label(value)
        if name == "uid":
            return self.user["user_id"] in value
        if name == "tag":
            return value in self.user["tags"]
        if name == "purchase":
            return value in self.user["purchases"]
        if name == "ip":
            return self.user["ip"] is not None and self.inside(value)
        if name == "time":
            return time_reference.is_open(value, self.now)
        if name == "and":
            return len(value) > 0 and all(self.condition(part) for part in value)
        if name == "or":
            return any(self.condition(part) for part in value)
        return name == "everyone"

    def condition_end(self, condition: dict[str, Any]) -> int:
        """When a condition that holds ends by its time windows; 0 if it does not."""
        ends = [self.condition_end(part) for part in condition.get("and", [])]
        if {*condition.get("time", {})} - {"zone"}:
            ends.append(time_reference.next_change(condition["time"], self.now) or 0)
        if "or" in condition:
            ends.append(self.longest([self.condition_end(part) for part in condition["or"] if self.condition(part)]))
        return self.shortest(ends)

    def group_end(self, group_id: str) -> int:
        """When the membership in a group ends by the time windows of its conditions."""
        group = next(group for group in self.home["groups"] if group["id"] == group_id)
        if self.user["user_id"] in group["users"]:
            return 0
        met = [item["condition"] for item in group["conditions"] if self.condition(item["condition"])]
        return self.longest([self.condition_end(condition) for condition in met])

    def shortest(self, ends: list[int]) -> int:
        return min((end for end in ends if end), default=0)

    def a_label(self, domain: str) -> str:
        return ".".join(idna.alabel(label).decode() for label in domain.lower().split("."))

    def inside(self, cidr: str) -> bool:
        address = ip_address(self.user["ip"])
        if getattr(address, "ipv4_mapped", None):
            address = address.ipv4_mapped  # type: ignore[union-attr,assignment]
        if cidr.startswith("::ffff:"):
            host, _, mask = cidr.removeprefix("::ffff:").partition("/")
            cidr = f"{host}/{int(mask or 128) - 96}"
        network = ip_network(cidr, strict=False)
        return address.version == network.version and address in network

    def in_group(self, project: dict[str, Any], group_id: str) -> bool:
        return any(
            group["id"] == group_id
            and (
                self.user["user_id"] in group["users"]
                or any(self.condition(c["condition"]) for c in group["conditions"])
            )
            for group in project["groups"]
        )

    def admits(self, project: dict[str, Any]) -> bool:
        domains = project["settings"].get("allowed_domains", [])
        return (
            not project["removed"]
            and (not domains or any(self.member("domain", domain) for domain in domains))
            and (not project["allow"] or any(self.in_group(project, group) for group in project["allow"]))
            and not any(self.in_group(project, group) for group in project["disallow"])
        )

    # Roles

    def is_default(self, role: dict[str, Any]) -> bool:
        return role["name"] == "default" or bool(role["default"])

    def condition_allows(self, role: dict[str, Any]) -> bool:
        return self.is_default(role) or role["condition"] == {} or self.condition(role["condition"])

    def end(self, item: Any) -> int | None:
        """The end of an assignment: None if it has ended, 0 if it never ends."""
        if isinstance(item, str):
            return 0
        if item.get("ttl", 0):
            return int(self.now + item["ttl"])
        expired = item.get("expired", 0)
        return None if expired and expired <= self.now else int(expired)

    def actions(self, role_name: str, action: str) -> list[str]:
        """The groups of the user that the project grants the role to, or revokes it from."""
        if self.home is None:
            return []
        services = self.home["settings"].get("services", {})
        return [
            item["group_id"]
            for item in services.get(str(self.application_id), {}).get("groups", [])
            if item["role"] == role_name and item["action"] == action and self.in_group(self.home, item["group_id"])
        ]

    def origins(self, role: dict[str, Any]) -> list[tuple[str, int]]:
        """The origins of a role, whatever its condition, each with its end."""
        found = []
        if self.actions(role["name"], "revoke") and not self.is_default(role):
            return []
        for item in self.own["roles"]:
            item_name = item if isinstance(item, str) else item["name"]
            end = self.end(item)
            if item_name == role["name"] and end is not None:
                found.append(("assigned", end))
        if self.is_default(role):
            found.append(("default", 0))
        elif role["condition"] != {} and self.condition(role["condition"]):
            found.append(("condition", 0))
        granted = self.actions(role["name"], "grant")
        if granted and not role["protected"] and self.admits(self.home):
            found += [("granted", self.group_end(group_id)) for group_id in granted]
        return [(way, self.until_window(role, end)) for way, end in found]

    def until_window(self, role: dict[str, Any], end: int) -> int:
        """The end of a role, whose condition may end before that."""
        if self.is_default(role) or not self.condition(role["condition"]):
            return end
        return self.shortest([end, self.condition_end(role["condition"])])

    def effective(self) -> dict[str, int]:
        """The effective roles, each with its last end."""
        if self.removed:
            return {}
        found = {}
        for role in self.defined.values():
            origins = self.origins(role)
            if origins and self.condition_allows(role):
                found[role["name"]] = self.longest([end for _, end in origins])
        return found

    def named(self) -> set[str]:
        if self.removed:
            return set()
        return {
            name
            for name, role in self.defined.items()
            if any(way in ("assigned", "granted") for way, _ in self.origins(role))
        }

    # Rules

    def flat(self, section: str, tree: dict[str, Any]) -> dict[str, dict[str, Any]]:
        found = {}
        for name, node in tree.items():
            if "value" in node:
                found[f"{section}.{name}"] = node
            else:
                found.update(self.flat(f"{section}.{name}", node))
        return found

    def both(self, data: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {
            path: node
            for section in ("private_data", "public_data")
            for path, node in self.flat(section, data.get(section, {})).items()
        }

    def yes(self, node: dict[str, Any]) -> bool:
        return node["value"] not in (False, None, 0, "")

    def parameters(self, *texts: str) -> list[str]:
        found: list[str] = []
        for text in texts:
            for part in text.split(","):
                if part.strip() and part.strip() not in found:
                    found.append(part.strip())
        return found

    def longest(self, ends: list[int]) -> int:
        return 0 if 0 in ends else max(ends)

    def sources(self) -> dict[str, list[tuple[int, str, list[str], int]]]:
        """For each rule that is held: (layer, role name, parameters, end) of all that keeps it alive."""
        if self.removed:
            return {}
        schema, own = self.both(self.schema), self.both(self.own)
        own = {path: node for path, node in own.items() if not 0 < node.get("expired", 0) <= self.now}
        roles = {name: self.both(self.defined[name]["meta"]) for name in self.effective()}
        found = {}
        for path in {*schema, *own, *(path for rules in roles.values() for path in rules)}:
            if path in own:
                if self.yes(own[path]):
                    node = own[path]
                    found[path] = [(2, "", self.parameters(node.get("params", "")), node.get("expired", 0))]
                continue
            here = []
            saying = {name: rules[path] for name, rules in roles.items() if path in rules}
            if path in schema and self.yes(schema[path]) and all(self.yes(node) for node in saying.values()):
                here.append((0, "", self.parameters(schema[path].get("params", "")), 0))
            for name, node in saying.items():
                if self.yes(node):
                    parameters = self.parameters(node.get("params", ""), self.defined[name]["params"])
                    here.append((1, name, parameters, self.effective()[name]))
            if here:
                found[path] = sorted(here, key=lambda source: source[:2])
        return found

    # Project access

    def given(self, project: dict[str, Any]) -> list[tuple[str, str, str, int]]:
        """(level, resource, role name, end), whether or not the condition holds."""
        found: list[tuple[str, str, str, int]] = []
        if self.application_id != 1 or self.removed or not self.admits(project):
            return found
        for level, resource in self.places(project):
            items = project["member"].get(level, [] if level == "project" else {})
            for item in items if level == "project" else items.get(resource, []):
                item_name = item if isinstance(item, str) else item["name"]
                role, end = self.defined.get(item_name), self.end(item)
                if role and end is not None and not role["protected"] and not self.has_root_rules(role):
                    found.append((level, resource, item_name, self.until_window(role, end)))
        return found

    def has_root_rules(self, role: dict[str, Any]) -> bool:
        starts = tuple(f"private_data.{section}." for section in LEVELS.values())
        return not all(path.startswith(starts) for path in self.both(role["meta"]))

    def places(self, project: dict[str, Any]) -> list[tuple[str, str]]:
        alive = [item for item in project["applications"] if not item["removed"]]
        return [
            ("project", ""),
            *(("applications", str(item["id"])) for item in alive),
            *(("services", str(item["id"])) for item in alive if item["is_service"]),
            *(("groups", item["id"]) for item in project["groups"]),
        ]

    def access(self, project: dict[str, Any]) -> dict[tuple[str, str, str], list[tuple[int, str, list[str], int]]]:
        """(level, resource, rule) → sources."""
        found: dict[tuple[str, str, str], list[tuple[int, str, list[str], int]]] = {}
        for level, resource in self.places(project):
            ends: dict[str, list[int]] = {}
            for at_level, at_resource, role_name, end in self.given(project):
                if at_level == "project" or (at_level, at_resource) == (level, resource):
                    ends.setdefault(role_name, []).append(end)
            for role_name in sorted(ends):
                role = self.defined[role_name]
                start = f"private_data.{LEVELS[level]}."
                for path, node in self.both(role["meta"]).items():
                    if path.startswith(start) and self.yes(node) and self.condition_allows(role):
                        key = (level, resource, path.removeprefix("private_data."))
                        parameters = self.parameters(node.get("params", ""), role["params"])
                        found.setdefault(key, []).append((1, role_name, parameters, self.longest(ends[role_name])))
        return found

    def shown(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        wanted = options.get("project_id")
        return [
            project
            for project in self.projects
            if not options.get("hide_project_access")
            and (
                wanted is None
                or any(
                    wanted.lower().replace("-", "_") == name.lower().replace("-", "_")
                    for name in (project["id"], *project["aliases"])
                )
            )
        ]

    # Renderings

    def line(self, name: str, sources: list[tuple[int, str, list[str], int]], options: dict[str, Any]) -> str:
        return self.line_of([sources], name, options)

    def line_of(self, paths: list[list[tuple[int, str, list[str], int]]], name: str, options: dict[str, Any]) -> str:
        sources = [source for path in paths for source in path]
        deciding = sorted((source for path in paths for source in self.deciding(path)), key=lambda source: source[:2])
        parameters = self.parameters(*(",".join(source[2]) for source in deciding))
        text = name + ("|" + ",".join(parameters) if parameters else "")
        if options.get("with_exp"):
            end = self.longest([source[3] for source in sources])
            text += f":{end - self.now if end else 0}"
        return text

    def deciding(self, sources: list[tuple[int, str, list[str], int]]) -> list[tuple[int, str, list[str], int]]:
        """Those of the highest layer: only their parameters count."""
        return [source for source in sources if source[0] == max(layer for layer, *_ in sources)]

    def full(self, **options: Any) -> list[str]:
        lines = [self.line(path, sources, options) for path, sources in self.sources().items()]
        for project in self.shown(options):
            for (level, resource, rule), sources in self.access(project).items():
                place = "" if level == "project" else f"{level}.{resource}."
                name = f"private_data.projectAccess.{project['id']}.{place}private_data.{rule}"
                lines.append(self.line(name, sources, options))
        return sorted(lines)

    def short(self, **options: Any) -> list[str]:
        held = self.sources()
        lines = []
        for name in {path.split(".", 1)[1] for path in held}:
            private, public = f"private_data.{name}", f"public_data.{name}"
            together = [path for path in (private, public) if path in held]
            if public in held and self.may_write_public() and not self.declares(public):
                lines.append(self.line(public, held[public], options))
                together.remove(public)
            elif public in held and self.declares(private):
                together.remove(public)
            if together:
                lines.append(self.line_of([held[path] for path in together], name, options))
        for project in self.shown(options):
            for (level, resource, rule), sources in self.access(project).items():
                place = "" if level == "project" else f"{level}/{resource}/"
                lines.append(self.line(f"{project['id']}/{place}{rule}", sources, options))
        return sorted(lines)

    def declares(self, path: str) -> bool:
        """Whether the schema or a role has the rule, with any value."""
        return path in self.both(self.schema) or any(path in self.both(role["meta"]) for role in self.defined.values())

    def may_write_public(self) -> bool:
        level = "none"
        for data in (self.schema, self.own):
            meta = data.get("secret_data", {}).get("meta", {})
            level = meta.get("public", {}).get("canWrite", {}).get("value", level)
        return level in ("self", "all")

    def role_name(self, project: dict[str, Any], level: str, resource: str, name: str) -> str:
        return f"{project['id']}/{name}" if level == "project" else f"{project['id']}.{level}.{resource}/{name}"

    def roles(self, **options: Any) -> list[str]:
        found = self.named()
        for project in self.shown(options):
            found |= {self.role_name(project, *given[:3]) for given in self.given(project)}
        return sorted(found)

    def effective_access(self, options: dict[str, Any]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for project in self.shown(options):
            for level, resource, name, end in self.given(project):
                if self.condition_allows(self.defined[name]):
                    found.setdefault(self.role_name(project, level, resource, name), []).append(end)
        return found

    def effective_roles(self, **options: Any) -> list[str]:
        return sorted({*self.effective(), *self.effective_access(options)})

    def expired(self, **options: Any) -> int:
        ends = [*self.effective().values(), *map(self.longest, self.effective_access(options).values())]
        return min([end for end in ends if end], default=0)

    def tree(self) -> dict[str, Any]:
        """Values by path of the stored record: own data over the schema."""
        found = {}
        for section in ("public_data", "private_data", "secret_data", "login"):
            values = {path: node["value"] for path, node in self.flat(section, self.schema.get(section, {})).items()}
            for path, node in self.flat(section, self.own.get(section, {})).items():
                values[path] = node["value"]
            found.update(values)
        return found

    def project_limit(self) -> int | None:
        if self.application_id != 1:
            return 0
        limits: list[int] = []
        for _, _, parameters, _ in self.sources().get("private_data.can_create_projects", []):
            if not parameters:
                return None
            limits += [int(part) if part.isascii() and part.isdigit() else 0 for part in parameters]
        return max(limits, default=0)
