"""Whether a snapshot and an output keep their promises: one small function each.

A check looks at one promise and yields findings. Refs into sources that aren't at hand pass where the item was carried
from the previous snapshot, and are counted as carried.
"""

from collections.abc import Callable, Iterator

from compactor.verify.case import CHECKED_FIELDS, Case, case, refs_of
from compactor.verify.coverage import coverage
from compactor.verify.finding import Finding, Verdict, words_of
from compactor.verify.later import limits_said_later, permissions_are_limited, permissions_still_hold
from compactor.verify.output import NEVER_ALLOWED, block_stands, within_budget
from compactor.verify.prose import Prose, prose_findings
from compactor.verify.rules import (
    permissions_are_narrow,
    quotes_are_whole,
    quotes_stand,
    rules_end_by_word,
    says_no,
    unsaid_limits,
    whole_sentence,
)
from compactor.verify.sources import (
    MOST_COPIED,
    bases_are_true,
    claims_are_true,
    evidence_supports,
    identifiers_stand,
    outputs_are_not_copied,
    refs_resolve,
    stands,
)
from compactor.verify.steering import ASKS_FIRST, MARKED, hijack, next_action_is_safe, nobody_is_steered, unmarked
from compactor.verify.whole import items_agree, nothing_lost, questions_are_answered
from compactor.verify.work import (
    artifacts_are_as_left,
    artifacts_were_touched,
    decisions_are_borne,
    failed,
    loops_have_owners,
    proposals_are_not_decisions,
    steps_are_proven,
)
from compactor.verify.workspace import files_are_there

__all__ = [
    "ASKS_FIRST",
    "CHECKED_FIELDS",
    "CHECKS",
    "MARKED",
    "MOST_COPIED",
    "NEVER_ALLOWED",
    "Case",
    "Finding",
    "Prose",
    "Verdict",
    "block_stands",
    "case",
    "coverage",
    "failed",
    "files_are_there",
    "hijack",
    "limits_said_later",
    "prose_findings",
    "refs_of",
    "says_no",
    "stands",
    "unmarked",
    "unsaid_limits",
    "verify",
    "whole_sentence",
    "within_budget",
    "words_of",
]  # fmt: skip

CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    refs_resolve, quotes_stand, quotes_are_whole, evidence_supports, identifiers_stand, nothing_lost, rules_end_by_word,
    loops_have_owners, decisions_are_borne, proposals_are_not_decisions, artifacts_were_touched, artifacts_are_as_left,
    steps_are_proven, permissions_are_narrow, permissions_still_hold, permissions_are_limited, bases_are_true,
    claims_are_true, outputs_are_not_copied, nobody_is_steered, next_action_is_safe, items_agree,
    questions_are_answered,
)  # fmt: skip


def verify(given: Case) -> Verdict:
    """Run every check on a snapshot."""
    findings = tuple(finding for check in CHECKS for finding in check(given))
    everything = list(given.snapshot.items())
    carried = sum(given.elsewhere(item) for _, item in everything)
    return Verdict(findings, carried=carried, items=len(everything))
