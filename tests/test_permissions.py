"""What permits and what forbids: a permission may not appear where the words say no, nor outlive their withdrawal."""

import pytest
from build import Talk

from compactor import words
from compactor.evidence import Evidence
from compactor.fold import fold
from compactor.offline import offline
from compactor.repair import settle
from compactor.snapshot import Authority, Constraint, Snapshot
from compactor.verify import case

DENIED = [
    "You can't deploy to production.", "You may not delete the backups", "You are not authorized to push to main.",
    "Nobody approved the migration", "I did not say you can merge", "Don't go ahead with the deploy.",
    "The release to staging is not approved yet.", "Du darfst nicht in prod_db schreiben.",
    "No puedes borrar la tabla", "你不可以删除", "I will never give you permission", "未经批准不要合并",
]  # fmt: skip
GRANTED = [
    "Great, deploy to staging now.", "Perfect, ship it to prod", "Yes deploy", "OK, send the email to Bob.",
    "You may run the tests as often as you like, but don't push.",
    "Yes, please go ahead with all the downgrades. Also, could I get a refund?",
]  # fmt: skip


def summarised(*said: str) -> Snapshot:
    talk = Talk().user("Look after the shop.").agent("What may I do?")
    for text in said:
        talk = talk.user(text).agent("Noted, I keep to that from now on.")
    return fold(None, offline(talk.ledger(), None, 2_000, len, talk.source().short))


@pytest.mark.parametrize("text", DENIED)
def test_what_is_denied_is_a_rule_and_no_permission(text: str) -> None:
    snapshot = summarised(text)
    assert text in [rule.quote for rule in snapshot.constraints]
    assert not snapshot.authority


@pytest.mark.parametrize("text", GRANTED)
def test_what_is_granted_is_a_permission(text: str) -> None:
    assert [item.quote for item in summarised(text).authority] == [text]


def test_a_withdrawn_permission_is_superseded_by_the_words_that_withdraw_it() -> None:
    grant, withdrawal = "You may push this once, to branch feat_8 only.", "Thanks. I take back the push permission."
    snapshot = summarised(grant, "You may run the tests.", withdrawal)
    states = {item.quote: (item.status, item.by) for item in snapshot.authority}
    rule = next(item for item in snapshot.constraints if item.quote == withdrawal)
    assert states == {grant: ("superseded", rule.id), "You may run the tests.": ("active", "")}


@pytest.mark.parametrize("text", DENIED)
def test_verify_turns_a_denied_permission_into_a_rule(text: str) -> None:
    source = Talk().user(text).source()
    here = f"{source.short}:1"
    wrong = Authority(id="A1", text=text, quote=text, granted_by="user", evidence=(here,), basis="stated")
    mended, verdict = settle(case(Snapshot(authority=(wrong,)), Evidence([source])), here)
    assert not mended.authority
    assert [rule.quote for rule in mended.constraints] == [text]
    assert isinstance(mended.constraints[0], Constraint)
    assert "denied" in {finding.check for finding in verdict.repaired}


def test_an_order_to_wait_is_no_permission_to_act() -> None:
    for text in (
        "Ask me before you commit anything.",
        "Never deploy on Friday.",
        "Before we deploy, check the counts.",
    ):
        assert not words.is_outward(text), text
