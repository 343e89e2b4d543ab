"""The typed summary: its fields, its items, the update that changes it.

Every item cites the entries it came from. The schema is published by `compact schema`; `schema_version` grows when a
field changes its meaning, fields are otherwise only added.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

Basis = Literal["stated", "observed", "reported", "inferred"]
Status = Literal["active", "closed", "superseded"]
_REF = r"[0-9a-f]{8,64}:[1-9][0-9]{0,11}(\.[1-9][0-9]{0,5})?(/[1-9][0-9]{0,5})?"
RefText = Annotated[str, Field(pattern=f"^{_REF}$")]
RefOrNone = Annotated[str, Field(pattern=f"^({_REF})?$")]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Item(Strict):
    """What every item has."""

    letter: ClassVar[str] = ""

    id: str = ""
    """Letter and number, stable across folds; empty until a fold gives one."""
    text: str
    evidence: tuple[RefText, ...] = ()
    status: Status = "active"
    by: str = ""
    """The id of the item that superseded it."""
    change: tuple[RefText, ...] = ()
    """The evidence of its closing or superseding."""
    basis: Basis = "reported"
    shown: bool = True


class Objective(Item):
    letter = "O"


class DoneCriterion(Item):
    letter = "G"


class Constraint(Item):
    """A rule the user or the system stated, verbatim."""

    letter = "C"
    quote: str = ""
    said_by: str = ""


class Authority(Item):
    """What was permitted, how far, and what expressly not."""

    letter = "A"
    quote: str = ""
    granted_by: str = ""
    scope: str = ""
    excludes: str = ""


class Approval(Strict):
    who: str
    ref: RefText


class Decision(Item):
    letter = "D"
    why: str = ""
    scope: str = "not stated"
    state: Literal["proposed", "accepted"] = "accepted"
    approved_by: Approval | None = None


class Rejection(Item):
    letter = "R"
    why: str = ""
    holds_while: str = ""


class Fact(Item):
    letter = "F"
    value: str = ""


class Artifact(Item):
    letter = "P"
    path: str = ""
    role: str = ""
    state: Literal["created", "modified", "read", "deleted"] = "read"
    owner: str = ""


class Completed(Item):
    letter = "S"
    proof: RefOrNone = ""
    """The ref of a result that succeeded."""


class InProgress(Item):
    letter = "W"
    owner: str = ""
    next: str = ""


class OpenLoop(Item):
    letter = "L"
    owner: str = ""
    next: str = ""


class Risk(Item):
    letter = "K"


class NextAction(Item):
    letter = "N"


class _Fields(Strict):
    objective: tuple[Objective, ...] = ()
    done_criteria: tuple[DoneCriterion, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    authority: tuple[Authority, ...] = ()
    decisions: tuple[Decision, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    facts: tuple[Fact, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    completed: tuple[Completed, ...] = ()
    in_progress: tuple[InProgress, ...] = ()
    open_loops: tuple[OpenLoop, ...] = ()
    risks: tuple[Risk, ...] = ()
    next_action: tuple[NextAction, ...] = ()


class Snapshot(_Fields):
    """The whole typed summary."""

    @classmethod
    def of_fields(cls, fields: Mapping[str, Iterable[Item]]) -> "Snapshot":
        """A snapshot of the items of each field."""
        values: dict[str, Any] = {name: tuple(items) for name, items in fields.items()}
        return cls(**values)

    def items(self) -> Iterator[tuple[str, Item]]:
        """Every item with its field's name, in field order."""
        for name in FIELDS:
            for item in getattr(self, name):
                yield name, item

    def of(self, name: str) -> tuple[Item, ...]:
        return tuple(getattr(self, name))

    def replace(self, **fields: Any) -> "Snapshot":
        return self.model_copy(update={name: tuple(items) for name, items in fields.items()})

    def map(self, change: Any) -> "Snapshot":
        """The snapshot with `change(field, item)` in place of each item; an item changed to None is left out."""
        return self.replace(
            **{name: [new for item in self.of(name) if (new := change(name, item)) is not None] for name in FIELDS}
        )


TYPES: dict[str, type[Item]] = {
    "objective": Objective, "done_criteria": DoneCriterion, "constraints": Constraint, "authority": Authority,
    "decisions": Decision, "rejected": Rejection, "facts": Fact, "artifacts": Artifact, "completed": Completed,
    "in_progress": InProgress, "open_loops": OpenLoop, "risks": Risk, "next_action": NextAction,
}  # fmt: skip
FIELDS: tuple[str, ...] = tuple(TYPES)


class Close(Strict):
    id: str
    """The id of an item that exists, or `<field>[<k>]` for the k-th added one (from 0)."""
    evidence: tuple[RefText, ...] = ()


class Supersede(Strict):
    id: str
    by: str
    """Both as in `Close`."""
    evidence: tuple[RefText, ...] = ()


class Added(_Fields):
    """The items an update adds, field by field, without ids."""


class Update(Strict):
    """What a model or the offline summariser returns: items to add, to close, to supersede."""

    add: Added = Added()
    close: tuple[Close, ...] = ()
    supersede: tuple[Supersede, ...] = ()


def is_verify(item: Item) -> bool:
    """Whether an open loop only asks to verify something that isn't proven."""
    return isinstance(item, OpenLoop) and item.text.startswith("verify: ")
