"""Which parameters are trained, and a refusal of whatever cannot be trained privately."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal

from torch import nn

from learning.bitfit.errors import PrivacyError
from learning.bitfit.layers import BATCH_NORMS, BIAS_NAMES, bias_rule, is_matrix, norm_weight_rule

Method = Literal["bitfit", "full", "last_layer"]
Kind = Literal["bias", "scale", "matrix"]

# How the libraries of the field call a classification head.
HEADS: Final = (
    "classifier",
    "score",
    "qa_outputs",
    "head",
    "fc",
    "classification_head",
    "logits_proj",
)


@dataclass(frozen=True, slots=True)
class Use:
    """One parameter of one layer."""

    layer: str
    module: nn.Module
    leaf: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Trained:
    """One trained parameter and the layers that use it (several when it is tied).

    ``written_out`` says that its per-example gradient is stored; otherwise only the norm is.
    """

    name: str
    parameter: nn.Parameter
    uses: tuple[Use, ...]
    written_out: bool


def find_head(model: nn.Module) -> str:
    """Name of the classification head.  Raises PrivacyError when there is none."""
    for name in HEADS:
        if isinstance(getattr(model, name, None), nn.Module):
            return name
    raise PrivacyError(
        f"no classification head found (looked for {', '.join(HEADS)}); pass head='its.name', "
        "or head=None to train biases only"
    )


def select(
    model: nn.Module, method: Method, head: str | None, exclude: Sequence[str] = ()
) -> list[Trained]:
    """Choose the trained parameters.

    Args:
        model: The model; nothing is changed.
        method: ``bitfit``: biases and the head. ``full``: everything. ``last_layer``: the head.
        head: Name of the head, ``"auto"``, or None for none.
        exclude: Shell patterns of parameter names that stay frozen.

    Returns:
        One entry per parameter, whatever the order of definition.

    Raises:
        PrivacyError: A chosen parameter has no per-example gradient here, or none is chosen.
    """
    refuse_wrapped(model)
    head = None if head is None else _path(model, find_head(model) if head == "auto" else head)
    owners = _owners(model)
    trained: list[Trained] = []
    refused: list[str] = []
    left_out: list[str] = []
    for name, parameter in model.named_parameters():
        in_head = head is not None and (name == head or name.startswith(f"{head}."))
        if not _wanted(name, method, in_head):
            continue
        if any(fnmatchcase(name, pattern) for pattern in exclude):
            left_out.append(name)
            continue
        uses = [use for use in owners[id(parameter)] if use is not None]
        if not uses or _is_tied_matrix(uses):
            refused.append(f"{name} ({type(_holder(model, name)).__name__})")
            continue
        written_out = method != "full" or all(use.kind != "matrix" for use in uses)
        trained.append(Trained(name, parameter, tuple(uses), written_out))
    if left_out and not (trained or refused):
        raise PrivacyError("nothing to train: exclude leaves nothing over; name fewer patterns")
    _check(trained, refused, method)
    return trained


def refuse_wrapped(model: nn.Module) -> None:
    """Raise PrivacyError where a wrapper hides the model, or exchanges gradients that are not private."""
    for module in model.modules():
        if isinstance(module, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
            raise PrivacyError(
                f"{type(module).__name__} exchanges gradients without noise; pass the model inside, "
                "model.module. Under torchrun `train` itself adds up what the processes have clipped"
            )
        if hasattr(module, "_orig_mod"):
            raise PrivacyError(
                "torch.compile(model) hides the names of the model's layers; "
                "call model.compile() instead, which keeps them"
            )


def _path(model: nn.Module, head: str) -> str:
    """Where the head is. A wrapper (PEFT) answers to its name from another place."""
    try:
        module = model.get_submodule(head)
    except AttributeError:
        raise PrivacyError(f"the model has no part named {head!r}; name its head") from None
    return next((name for name, part in model.named_modules() if part is module), head)


def _wanted(name: str, method: Method, in_head: bool) -> bool:
    if method == "full":
        return True
    if method == "last_layer":
        return in_head
    return in_head or "bias" in name.rsplit(".", 1)[-1] or ".parametrizations.bias." in f".{name}"


def _owners(model: nn.Module) -> dict[int, list[Use | None]]:
    """Every use of every parameter; None for a use that no formula covers."""
    found: dict[int, list[Use | None]] = {}
    attention = {
        id(part)
        for module in model.modules()
        if isinstance(module, nn.MultiheadAttention)
        for part in module.modules()
    }
    for layer, module in model.named_modules():
        for leaf, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            kind = None if id(module) in attention else _kind(module, leaf)
            use = None if kind is None else Use(layer, module, leaf, kind)
            found.setdefault(id(parameter), []).append(use)
    return found


def _kind(module: nn.Module, leaf: str) -> Kind | None:
    if leaf in BIAS_NAMES:
        return "bias" if bias_rule(module) is not None else None
    if leaf != "weight":
        return None
    if norm_weight_rule(module) is not None:
        return "scale"
    return "matrix" if is_matrix(module) else None


def _is_tied_matrix(uses: Sequence[Use]) -> bool:
    """A matrix shared by two layers: the norm of a sum over different formulas is not written here."""
    return len(uses) > 1 and any(use.kind == "matrix" for use in uses)


def _holder(model: nn.Module, name: str) -> nn.Module:
    path, _, _ = name.rpartition(".")
    return model.get_submodule(path)


def _check(trained: list[Trained], refused: list[str], method: Method) -> None:
    if refused:
        raise PrivacyError(
            "no per-example gradient is available for: "
            + ", ".join(refused[:10])
            + (f" and {len(refused) - 10} more" if len(refused) > 10 else "")
            + ". MultiheadAttention, recurrent layers and tied or bare parameters fire no hook that "
            "sees one example at a time. Keep them frozen with exclude=[pattern], or build the layer "
            "from nn.Linear."
        )
    if not trained and method == "last_layer":
        raise PrivacyError("nothing to train: last_layer trains the head; pass head='its.name'")
    if not trained:
        raise PrivacyError(
            "nothing to train: the model has no bias. Call add_biases(model) first "
            "(DP-BiTFiT-Add), or name a head"
        )


def stateful(model: nn.Module) -> Iterator[nn.Module]:
    """The layers of torch's that change their own buffers while in training mode."""
    for module in model.modules():
        keeps = getattr(module, "track_running_stats", False) is True
        if keeps or isinstance(module, BATCH_NORMS) or type(module).__name__ == "_SpectralNorm":
            yield module


def batch_norms(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers that mix the examples of a batch while in training mode."""
    for name, module in model.named_modules():
        if isinstance(module, BATCH_NORMS):
            yield name, module
