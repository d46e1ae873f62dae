"""The models of a gateway: LiteLLM's ``model_list`` shape, each entry with its upstream."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
from pydantic import BaseModel, ConfigDict, Field

from connectors.base import Upstream
from connectors.litellm_provider import LiteLlm, check_litellm
from connectors.local import LocalModel
from connectors.openai_compatible import OpenAICompatible
from connectors.ppft import ClientOptions, PpftClient, PpftUpstream
from connectors.token_encoder import MINILM, token_encoder
from connectors.weights import chat_model_gguf
from privacy.ppft.encoder import TokenEncoder
from privacy.ppft.noise import Noise
from privacy.ppft.tasks import task_named
from privacy.ppft.wire import RowType

_ENVIRONMENT = "os.environ/"
_BOX = "smollm2"


class LiteLlmParams(BaseModel):
    """``litellm_params`` of one model; further fields go to litellm as they are."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1)
    api_base: str | None = None
    api_key: str | None = Field(None, repr=False)


class ModelEntry(BaseModel):
    """One entry of ``model_list``."""

    model_config = ConfigDict(extra="ignore")

    model_name: str = Field(min_length=1)
    litellm_params: LiteLlmParams


@dataclass(frozen=True, slots=True)
class Model:
    """A model that clients may name.

    Attributes:
        name: The public name.
        upstream_name: What the upstream calls it.
        provider: ``openai``, ``local``, ``ppft`` or litellm's prefix.
        upstream: Where requests go.
    """

    name: str
    upstream_name: str
    provider: str
    upstream: Upstream


class PpftParams(BaseModel):
    """Further ``litellm_params`` of a ``ppft/`` model.

    Attributes:
        encoder: ``minilm``, or a folder or hub name of any transformers encoder.
        k: Tokens a row; must be the model's.
        epsilon: Rate of the noise per unit of distance; one row costs at most twice this.
        mechanism: ``laplace`` or ``gaussian``.
        task: What requests ask for, see `privacy.ppft.tasks`.
        row_type: Type of the rows on the wire.
    """

    model_config = ConfigDict(extra="forbid")

    encoder: str = MINILM
    k: int = Field(default=4, ge=1, le=64)
    epsilon: float = Field(default=75.0, gt=0.0, allow_inf_nan=False)
    mechanism: Literal["laplace", "gaussian"] = "laplace"
    task: str = "answer"
    row_type: RowType = "int8"


class ConfigurationError(ValueError):
    """A model list that can not be used; the message says how to mend it."""


class Router:
    """Looks models up by their public name; closes the shared client with them."""

    def __init__(self, models: Sequence[Model], client: httpx.AsyncClient | None = None) -> None:
        self._client = client
        self._models: dict[str, Model] = {}
        for model in models:
            if model.name in self._models:
                raise ConfigurationError(
                    f"model_list: {model.name!r} is listed twice; give each entry its own name"
                )
            self._models[model.name] = model

    def get(self, name: str) -> Model | None:
        return self._models.get(name)

    def names(self) -> list[str]:
        return list(self._models)

    async def close(self) -> None:
        for model in self._models.values():
            await model.upstream.close()
        if self._client is not None:
            await self._client.aclose()


def build_router(
    entries: Sequence[ModelEntry], client: httpx.AsyncClient, *, timeout: float, threads: int = 1
) -> Router:
    """Build the router of a model list.

    Raises:
        ConfigurationError: an entry repeats a name, names an environment variable that is unset, names no
            provider, names a local file that is none, or needs litellm where it is not installed.
    """
    return Router([_model(entry, client, timeout, threads) for entry in entries], client)


def _model(entry: ModelEntry, client: httpx.AsyncClient, timeout: float, threads: int) -> Model:
    params = entry.litellm_params
    provider, _, rest = params.model.partition("/")
    if provider == "local":
        return Model(entry.model_name, rest or _BOX, provider, _local(entry, rest, threads))
    if not rest:
        example = f"{provider}/NAME" if params.model.endswith("/") else f"openai/{params.model}"
        raise ConfigurationError(
            f"model_list: {entry.model_name!r}: write {example}, or another provider's prefix, "
            f"not {params.model}"
        )
    key = _secret(params.api_key, entry.model_name)
    if provider == "openai":
        upstream = OpenAICompatible(client, params.api_base or "", key)
        return Model(entry.model_name, rest, provider, upstream)
    if provider == "ppft":
        return Model(entry.model_name, rest, provider, _ppft(entry, rest, client, key, threads))
    try:
        check_litellm()
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"model_list: {entry.model_name!r}: {error}") from None
    options: dict[str, Any] = params.model_dump(exclude_none=True)
    if key:
        options["api_key"] = key
    return Model(entry.model_name, rest, provider, LiteLlm(options, timeout))


def _ppft(
    entry: ModelEntry, rest: str, client: httpx.AsyncClient, key: str, threads: int
) -> PpftUpstream:
    """Build the client of an embedding-only backend; ε and k are this side's, never the server's."""
    params = entry.litellm_params
    where = f"model_list: {entry.model_name!r}"
    if not rest or not params.api_base:
        raise ConfigurationError(f"{where} needs model: ppft/NAME and the api_base of its server")
    try:
        given = PpftParams.model_validate(params.model_extra or {})
        noise = Noise(given.mechanism, given.epsilon)
        options = ClientOptions(given.k, noise, task_named(given.task), given.row_type)
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None

    def encoder() -> TokenEncoder:
        return token_encoder(given.encoder, threads=threads)

    return PpftUpstream(PpftClient(client, params.api_base, key, rest, encoder, options))


def _local(entry: ModelEntry, rest: str, threads: int) -> LocalModel:
    if rest in ("", _BOX):
        return LocalModel(chat_model_gguf, _BOX, threads)
    path = Path(rest)
    if path.suffix != ".gguf" or not path.is_file():
        raise ConfigurationError(
            f"model_list: {entry.model_name!r}: {rest} is no GGUF file; write local/PATH.gguf, or "
            f"local/{_BOX} for the model in the box"
        )
    return LocalModel(lambda: path, path.stem, threads)


def _secret(value: str | None, model: str) -> str:
    if value is None or not value.startswith(_ENVIRONMENT):
        return value or ""
    name = value.removeprefix(_ENVIRONMENT)
    found = os.environ.get(name)
    if not found:
        raise ConfigurationError(
            f"model_list: {model!r} takes its api_key from the environment variable {name}, "
            "which is not set"
        )
    return found
