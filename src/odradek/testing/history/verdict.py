"""The verdict over a history: what broke which rule, and how much the run can prove at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from odradek.testing.history.operations import History, Outcome
from odradek.testing.history.rules import RULES
from odradek.testing.history.view import View
from odradek.testing.history.violation import Violation

EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Counts:
    """How much was done."""

    sends: int
    acknowledged: int
    unknown: int
    failed: int
    reads: int
    commits: int
    transactions: int
    faults: dict[str, int]

    @property
    def unknown_share(self) -> float:
        """The share of sends of which nobody knows what became of them: a high one proves little."""
        return self.unknown / self.sends if self.sends else 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Violations by rule; every rule is listed."""

    seed: int
    duration_ms: int
    counts: Counts
    violations: dict[str, list[Violation]]

    @property
    def is_good(self) -> bool:
        """Whether no rule was broken."""
        return not any(self.violations.values())

    def lines(self) -> list[str]:
        """The report, for people."""
        counts = self.counts
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.faults.items())) or "none"
        lines = [
            f"seed {self.seed}, {self.duration_ms / 1000:.0f} s",
            f"sends: {counts.sends} ({counts.acknowledged} acknowledged, {counts.failed} failed, "
            f"{counts.unknown} unknown = {counts.unknown_share:.1%})",
            f"records read: {counts.reads}; commits: {counts.commits}; transactions: {counts.transactions}",
            f"faults: {faults}",
        ]
        for rule, found in self.violations.items():
            if found:
                lines.append(f"{rule}: {len(found)}")
                lines += [f"    {violation}" for violation in found[:EXAMPLES]]
        lines.append("no rule was broken" if self.is_good else "RULES WERE BROKEN")
        return lines


def check(history: History, *, seed: int = 0, duration_ms: int = 0) -> Verdict:
    """Apply every rule."""
    view = View(history)
    violations = {name: list(rule(view)) for name, rule in RULES.items()}
    return Verdict(seed, duration_ms, _count(history), violations)


def _count(history: History) -> Counts:
    outcomes = Counter(send.outcome for send in history.sends)
    return Counts(
        sends=len(history.sends),
        acknowledged=outcomes[Outcome.ACKNOWLEDGED],
        unknown=outcomes[Outcome.UNKNOWN],
        failed=outcomes[Outcome.FAILED],
        reads=sum(len(poll.reads) for poll in history.polls),
        commits=len(history.commits),
        transactions=len(history.transactions),
        faults=dict(Counter(fault.kind for fault in history.faults)),
    )
