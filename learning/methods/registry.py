"""The methods that are installed, by name."""

import importlib
import pkgutil
from functools import cache
from typing import Final

import learning.methods
from learning.methods.base import Method

_NOT_METHODS: Final = frozenset({"base", "registry"})


class UnknownMethod(ValueError):
    """There is no such method here; the message says which there are."""


def names() -> list[str]:
    """Return the names of the methods that this installation has files for."""
    found = pkgutil.iter_modules(learning.methods.__path__)
    return sorted(m.name for m in found if m.name not in _NOT_METHODS and m.name[0] != "_")


@cache
def method(name: str) -> Method:
    """Return a method by its name.

    Raises:
        UnknownMethod: There is none, or what it needs is not installed.
    """
    if name not in names():
        raise UnknownMethod(f"There is no such method here; there are: {', '.join(names())}.")
    try:
        module = importlib.import_module(f"learning.methods.{name}")
    except ImportError as error:
        raise UnknownMethod(
            f"The method {name} needs {error.name or 'a package'}, which is not installed. "
            "Run: pip install -c constraints.txt -e '.[finetune]'"
        ) from None
    found: Method = module.METHOD
    return found
