"""The policy: what may leave, in which form and at what price.  One YAML file, one model."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from privacy.substitution.rules import Action, BudgetRule, PoolRule
from privacy.types import ENTITY_TYPES, NAMED_TYPES

Positive = Annotated[float, Field(gt=0)]
Probability = Annotated[float, Field(ge=0, le=1)]

_EDGE_ANCHORS = re.compile(r"^\^|(?<!\\)\$$")


class _Strict(BaseModel):
    # An unknown field is a spelling mistake that would switch a protection off in silence.
    model_config = ConfigDict(extra="forbid", frozen=True)


class EntityPolicy(_Strict):
    """The treatment of one entity type."""

    action: Action
    mechanism: Literal["exponential", "uniform", "paper"] = "exponential"
    metric: Literal["angular", "cosine"] = "angular"
    epsilon: Positive = Field(1.0, description="ε of one draw; the loss is at most ε·distance.")
    target_distance: Probability = Field(
        0.4, description="τ: the angular distance that substitutes are drawn around."
    )
    theta: Probability = Field(0.5, description="Cosine cut of mechanism 'paper' only.")
    never_self: bool = True
    threshold: Probability = Field(0.5, description="Detections below this score are ignored.")


class Budget(_Strict):
    """What a session may spend (basic composition)."""

    session_epsilon: Positive | None = 100.0
    session_delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    date_epsilon_per_day: Positive = 0.1
    on_exhausted: BudgetRule = "block"


class Pattern(_Strict):
    """An organisation's own identifier, as a regular expression."""

    name: str = Field(min_length=1, max_length=64)
    type: str = "RECORD_ID"
    regex: str = Field(min_length=1, max_length=500)
    score: Probability = 0.9

    @field_validator("type")
    @classmethod
    def _known_type(cls, value: str) -> str:
        return _entity_type(value)

    @field_validator("regex")
    @classmethod
    def _usable(cls, value: str) -> str:
        try:
            compiled = re.compile(value)
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from None
        if _EDGE_ANCHORS.search(value):
            raise ValueError("is anchored with ^ or $, so it can not match inside a text; use \\b")
        if compiled.match(""):
            raise ValueError("matches the empty string; require at least one character")
        return value


class DenyEntry(_Strict):
    """A string that is always an entity."""

    text: str = Field(min_length=1)
    type: str

    @field_validator("type")
    @classmethod
    def _known_type(cls, value: str) -> str:
        return _entity_type(value)


class Retrieval(_Strict):
    """Which context is added to a question."""

    vector_stores: tuple[str, ...] = ()
    top_k: int = Field(3, ge=1, le=50)
    min_score: float = Field(0.2, ge=-1, le=1)
    max_characters: int = Field(4000, ge=100)
    template: str = (
        "Use the following context to answer.\n\nContext:\n{context}\n\nQuestion: {question}"
    )

    @field_validator("template")
    @classmethod
    def _complete(cls, value: str) -> str:
        for field in ("{context}", "{question}"):
            if value.count(field) != 1:
                raise ValueError(f"must hold {field} exactly once")
        return value


class Routes(_Strict):
    """Which requests go to the backend that receives noised embeddings instead of text."""

    text_free_model: str = Field("", description="A model of the list with prefix ppft/.")
    always: bool = Field(False, description="Every request goes there.")
    types: tuple[str, ...] = Field((), description="Entity types that send a request there.")
    uncovered_script: Literal["allow", "route", "block"] = Field(
        "allow", description="What happens to texts in a script that detection does not cover."
    )

    @field_validator("types")
    @classmethod
    def _known_types(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_entity_type(each) for each in value)


class Policy(_Strict):
    """A complete policy."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    description: str = ""
    entities: dict[str, EntityPolicy]
    budget: Budget = Budget()
    on_pool_exhausted: PoolRule = "numbered"
    allow: tuple[str, ...] = ()
    deny: tuple[DenyEntry, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    retrieval: Retrieval = Field(default_factory=lambda: Retrieval.model_validate({}))
    models: tuple[str, ...] = Field(("*",), description="Model names a tenant may use; * is all.")
    images: Literal["block", "allow"] = Field(
        "block", description="Whether pictures, audio and files may pass: nothing looks into them."
    )
    routes: Routes = Routes.model_validate({})
    logprobs: Literal["drop", "block"] = "drop"
    fuzzy_restore: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> "Policy":
        for name, entity in self.entities.items():
            _entity_type(name)
            if entity.action == "substitute" and name not in NAMED_TYPES:
                raise ValueError(
                    f"entities.{name}: 'substitute' draws from a pool, which only "
                    f"{', '.join(NAMED_TYPES)} have; use 'surrogate'"
                )
            if entity.action == "surrogate" and name in NAMED_TYPES:
                raise ValueError(
                    f"entities.{name}: 'surrogate' is for structured types; use 'substitute'"
                )
        missing = [t for t in ENTITY_TYPES if t not in self.entities]
        if missing:
            raise ValueError(
                f"entities: no rule for {', '.join(missing)}; name every type, with action "
                "'allow' where values may leave as they are"
            )
        routes = self.routes
        sends = routes.always or routes.types or routes.uncovered_script == "route"
        if not routes.text_free_model and (sends or self.budget.on_exhausted == "route"):
            raise ValueError("routes.text_free_model: name the model that requests are sent to")
        names = [p.name for p in self.patterns]
        if len(set(names)) != len(names):
            raise ValueError("patterns: two patterns have the same name")
        return self


def _entity_type(value: str) -> str:
    if value not in ENTITY_TYPES:
        raise ValueError(f"unknown entity type {value!r}; known are {', '.join(ENTITY_TYPES)}")
    return value
