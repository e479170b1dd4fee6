"""The findings of ``sso doctor``, which the console shows too."""

from collections.abc import Iterable

from msgspec import Struct


class Finding(Struct, frozen=True):
    name: str
    good: bool
    detail: str
    advice: str = ""
    warning: bool = False  # a failed check is reported, but does not count as a failure


class Report:
    """The findings by importance: failed checks, notes, passed checks."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sorted(findings, key=lambda finding: (finding.good, finding.warning and not finding.good))
        self.failed = [finding for finding in self.findings if not finding.good and not finding.warning]
        self.notes = [finding for finding in self.findings if not finding.good and finding.warning]
        self.passed = [finding for finding in self.findings if finding.good]

    @property
    def passed_names(self) -> str:
        return ", ".join(dict.fromkeys(finding.name for finding in self.passed))

    @property
    def conclusion(self) -> str:
        """Returns one line, such as "5 notes, nothing wrong."."""
        notes = [_count(len(self.notes), "note")] if self.notes else []
        failed = f"{_count(len(self.failed), 'check')} failed" if self.failed else "nothing wrong"
        text = ", ".join([failed, *notes] if self.failed else [*notes, failed])
        return f"{text[0].upper()}{text[1:]}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"
