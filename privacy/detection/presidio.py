"""Reach presidio's pattern recognizers without its NLP stack.

``import presidio_analyzer`` runs the package's ``__init__``, which imports spaCy, thinc and with them
torch: 5.8 s of CPU and 460 MB for a few hundred lines of regular expressions and checksums. The
recognizers themselves need seven small modules. `load_class` executes exactly those from the
installed distribution, as private modules whose own ``import`` statements are answered by
`_PrivateImporter`:

* ``from presidio_analyzer import X`` gives the class from the one module that defines it;
* ``presidio_analyzer.nlp_engine`` gives an empty stand-in, because the recognizers use its names in
  annotations only;
* any other module of the package is loaded in the same way; everything else is the ordinary import.

``sys.modules`` is never touched, so nothing that another thread imports at the same moment can see a
half-made package, and a later real ``import presidio_analyzer`` works in this process too. The hook
is the documented one: a module's import statements call ``__builtins__["__import__"]`` of its own
globals (Python reference, "The import system", "Replacing the standard import system").
"""

import builtins
import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_PACKAGE: Final = "presidio_analyzer"
# Public name -> module that defines it.
_EXPORTS: Final = {
    "AnalysisExplanation": "analysis_explanation",
    "EntityRecognizer": "entity_recognizer",
    "LocalRecognizer": "local_recognizer",
    "Pattern": "pattern",
    "PatternRecognizer": "pattern_recognizer",
    "RecognizerResult": "recognizer_result",
}
_STAND_INS: Final = {"presidio_analyzer.nlp_engine": ("NlpArtifacts",)}


class PresidioUnavailable(RuntimeError):
    """presidio-analyzer is missing or its layout is not the one this adapter knows."""


class _PrivateImporter:
    """Loads modules of the package outside ``sys.modules``; one lock, each module once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._modules: dict[str, ModuleType] = {}
        self._root: Path | None = None

    def load(self, name: str) -> ModuleType:
        """Return the private module ``name`` ("presidio_analyzer.pattern"), executed once."""
        with self._lock:
            module = self._modules.get(name)
            if module is not None:
                return module
            if name in _STAND_INS:
                return self._stand_in(name)
            return self._execute(name)

    def import_(
        self,
        name: str,
        globals_: Mapping[str, Any] | None = None,
        locals_: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Answer one import statement of a private module."""
        if level:
            package = str((globals_ or {}).get("__package__", _PACKAGE))
            name = importlib.util.resolve_name("." * level + name, package)
        if name != _PACKAGE and not name.startswith(_PACKAGE + "."):
            return builtins.__import__(name, globals_, locals_, fromlist or (), level)
        if name != _PACKAGE:
            return self.load(name)
        facade = ModuleType(_PACKAGE)
        for export in fromlist or ():
            if export not in _EXPORTS:
                raise PresidioUnavailable(f"presidio_analyzer.{export} is not known to the adapter")
            defining = self.load(f"{_PACKAGE}.{_EXPORTS[export]}")
            setattr(facade, export, getattr(defining, export))
        return facade

    def _stand_in(self, name: str) -> ModuleType:
        module = ModuleType(name)
        for attribute in _STAND_INS[name]:
            setattr(module, attribute, type(attribute, (), {}))
        self._modules[name] = module
        return module

    def _execute(self, name: str) -> ModuleType:
        path = self._path(name)
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise PresidioUnavailable(
                f"{name} is not part of the installed presidio-analyzer; "
                "install a version that pyproject.toml allows"
            )
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.import_}
        # Registered only when it ran to the end, so a failure is met again and not half a module.
        spec.loader.exec_module(module)
        self._modules[name] = module
        return module

    def _path(self, name: str) -> Path:
        if self._root is None:
            # For a top-level name this looks at the finders only; nothing is imported.
            spec = importlib.util.find_spec(_PACKAGE)
            if spec is None or not spec.submodule_search_locations:
                raise PresidioUnavailable("install presidio-analyzer: its pattern files are needed")
            self._root = Path(next(iter(spec.submodule_search_locations)))
        return self._root.joinpath(*name.split(".")[1:]).with_suffix(".py")


_IMPORTER: Final = _PrivateImporter()


def load_class(module: str, name: str) -> Any:
    """Return class ``name`` of ``presidio_analyzer.<module>``.

    Args:
        module: Path below the package, such as "predefined_recognizers.generic.iban_recognizer".
        name: Name of a class in it, such as "IbanRecognizer".

    Raises:
        PresidioUnavailable: The distribution is missing or laid out differently.
    """
    loaded = _IMPORTER.load(f"{_PACKAGE}.{module}")
    found = getattr(loaded, name, None)
    if found is None:
        raise PresidioUnavailable(f"presidio_analyzer.{module} has no class {name}")
    return found
