"""The server's configuration file: LiteLLM's ``model_list`` shape and a few settings of ours."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from connectors.router import ConfigurationError, LiteLlmParams, ModelEntry
from policies.model import Retrieval

LOCAL_MODEL = "penname-local"


class ServerConfig(BaseModel):
    """``penname serve --config FILE``."""

    model_config = ConfigDict(extra="forbid")

    model_list: list[ModelEntry] = Field(min_length=1)
    policy: str = Field("", description="A shipped policy's name or a file, relative to this one.")
    retrieval: Retrieval | None = Field(None, description="Replaces the policy's retrieval.")
    database_url: str = ""


_FIELDS = ", ".join(ServerConfig.model_fields)


def _told(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "extra_forbidden":
        known = f"; known are {_FIELDS}" if len(fault["loc"]) == 1 else ""
        return f"unknown field{known}"
    return "is missing" if fault["type"] == "missing" else str(fault["msg"])


def load_config(path: Path) -> ServerConfig:
    """Read and validate a configuration file.

    Raises:
        ConfigurationError: naming each fault, never a key's value.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is no text in UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigurationError(f"{path}:{mark.line + 1 if mark else 1}: is not YAML") from None
    if data is None:
        raise ConfigurationError(f"{path}: is empty; it needs a model_list, see README.md")
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path}: must be a mapping of {_FIELDS}")
    try:
        config = ServerConfig.model_validate(data)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [f"{path}: {'.'.join(map(str, f['loc'])) or 'file'}: {_told(f)}" for f in faults]
        raise ConfigurationError("\n".join(lines)) from None
    beside = path.parent / config.policy
    if config.policy and beside.is_file():
        config.policy = str(beside)
    return config


def default_config() -> ServerConfig:
    """Return the configuration without a file: OpenAI when its key is set, the local model always."""
    models = [
        ModelEntry(
            model_name=LOCAL_MODEL,
            litellm_params=LiteLlmParams(model="local/smollm2", api_base=None, api_key=None),
        )
    ]
    if os.environ.get("OPENAI_API_KEY"):
        models += [
            ModelEntry(
                model_name=name,
                litellm_params=LiteLlmParams(
                    model=f"openai/{name}",
                    api_base=os.environ.get("OPENAI_BASE_URL"),
                    api_key="os.environ/OPENAI_API_KEY",
                ),
            )
            for name in ("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini", "gpt-5", "gpt-5-mini")
        ]
    return ServerConfig(model_list=models, policy="", retrieval=None, database_url="")
