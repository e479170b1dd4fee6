"""Checks of the dependencies of a release: ``supply_chain.py LICENCES.json BILL.json AUDIT.json REQUIREMENTS.txt``.

Every licence must be one that allows a studio to use and distribute the program, the bill of materials must name what
the lock file installs and nothing else, and no dependency may have a known weakness, as far as the index has the data.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

# Permissive licences, and the MPL, whose terms concern changes of its own files.
ACCEPTED = re.compile(
    r"(MIT|MIT-0|BSD|Apache|Apache-2\.0|BSD-[23]-Clause|PSF-2\.0|MPL-2\.0|ISC|Unlicense|Mozilla Public License 2\.0)"
)
# Dependencies whose metadata names no licence, with the licence that their own files state.
STATED = {"zxcvbn-rs-py": "MIT"}


def main(licences: str, bill: str, audit: str, requirements: str) -> int:
    packages = {_key(item["Name"]): item for item in _read(licences) if _key(item["Name"]) != "sso"}
    problems = [
        f"{name}: the licence {item['License']} is not among the accepted ones"
        for name, item in packages.items()
        if not is_accepted(STATED.get(name, item["License"]))
    ]
    listed = {_key(part["name"]): part["version"] for part in _read(bill)["components"] if _key(part["name"]) != "sso"}
    locked = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", Path(requirements).read_text(), re.MULTILINE))
    locked = {_key(name): version for name, version in locked.items()}
    installed = {name: item["Version"] for name, item in packages.items()}
    problems += [f"{name}: in the bill of materials and not in the environment" for name in listed.keys() - installed]
    problems += [f"{name}: not in the bill of materials" for name in installed.keys() - listed]
    problems += [
        f"{name}: version {version} is not that of the lock file"
        for name, version in {**installed, **listed}.items()
        if locked.get(name) != version
    ]
    problems += weaknesses(_read(audit) if Path(audit).exists() else {})
    print("\n".join(problems), file=sys.stderr)
    return bool(problems)


def is_accepted(licence: str) -> bool:
    """Returns whether each licence of an expression such as "MPL-2.0 AND (Apache-2.0 OR MIT)" is accepted."""
    names = [name.strip(" ()") for name in re.split(r" AND | OR |;", licence.replace("(MPL 2.0)", ""))]
    return all(ACCEPTED.match(name) for name in names)


def weaknesses(audit: dict[str, Any]) -> list[str]:
    """Returns what pip-audit has found. Says how much it could not find out: not every index has the data."""
    dependencies = audit.get("dependencies", [])
    unknown = [item["name"] for item in dependencies if "skip_reason" in item]
    if unknown or not dependencies:
        count = f"{len(unknown)} of {len(dependencies)} dependencies" if dependencies else "all dependencies"
        print(f"known weaknesses: the index has no data about {count}; run this where it has", file=sys.stderr)
    return [
        f"{item['name']} {item['version']}: {found['id']}, repaired in {', '.join(found['fix_versions']) or 'none'}"
        for item in dependencies
        for found in item.get("vulns", [])
    ]


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _read(file: str) -> Any:
    return json.loads(Path(file).read_text())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
