"""Reading policies: YAML in, a validated `Policy` out, errors with file, line and mend."""

from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from policies.model import Policy

_DEFAULTS = resources.files("policies") / "defaults"


class PolicyError(ValueError):
    """A policy that can not be used; the message says where and how to mend it."""


def default_names() -> list[str]:
    """Return the names of the policies that ship with Penname."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in _DEFAULTS.iterdir()
        if entry.name.endswith(".yaml")
    )


def load_policy(name_or_path: str) -> Policy:
    """Load a shipped policy by name, or a file by path.

    Raises:
        PolicyError: the policy does not exist or is not valid.
    """
    if name_or_path in default_names():
        return _shipped(name_or_path)
    path = Path(name_or_path)
    if not path.is_file():
        raise PolicyError(
            f"{name_or_path}: no such file, and no shipped policy of that name "
            f"(there are: {', '.join(default_names())})"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(
            f"{path}: cannot be read as UTF-8 text ({type(error).__name__})"
        ) from None
    return parse_policy(text, str(path))


@lru_cache(maxsize=16)
def _shipped(name: str) -> Policy:
    text = (_DEFAULTS / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_policy(text, f"policies/defaults/{name}.yaml")


def parse_policy(text: str, source: str) -> Policy:
    """Parse and validate the text of a policy.

    Raises:
        PolicyError: with every fault on a line of its own, as ``source:line: field: what to do``.
    """
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        problem = getattr(error, "problem", None) or "is not YAML"
        raise PolicyError(f"{source}:{line}: {problem}") from None
    if not isinstance(data, dict):
        raise PolicyError(f"{source}:1: a policy is a mapping of fields; see docs/policies.md")
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        faults = [
            f"{source}:{_line(tree, fault['loc'])}: {_field(fault['loc'])}: {_message(fault)}"
            for fault in error.errors(include_url=False, include_context=False)
        ]
        raise PolicyError("\n".join(faults)) from None


def _message(fault: Any) -> str:
    if fault["type"] == "extra_forbidden":
        return "unknown field; check the spelling or remove it"
    message: str = fault["msg"]
    return message.removeprefix("Value error, ")


def _field(location: Sequence[int | str]) -> str:
    return ".".join(str(part) for part in location) or "policy"


def _line(node: Any, location: Sequence[int | str]) -> int:
    """Return the line of the deepest node on the way to ``location`` that the file has."""
    line = 1
    for part in location:
        child = None
        if isinstance(node, yaml.MappingNode):
            child = next((v for k, v in node.value if k.value == str(part)), None)
            key = next((k for k, _ in node.value if k.value == str(part)), None)
            line = key.start_mark.line + 1 if key is not None else line
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            child = node.value[part] if part < len(node.value) else None
            line = child.start_mark.line + 1 if child is not None else line
        if child is None:
            break
        node = child
    return line
