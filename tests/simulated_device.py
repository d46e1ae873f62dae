"""A device that is not the CPU, on a machine that has nothing else.

Importing this registers the device ``sim`` in torch, for good: only a process of its own may do so, and
before its first backward pass. Its tensors lie in the CPU's memory and are computed by the CPU's kernels.
What CUDA refuses is refused: operations over two devices (but for zero-dimensional tensors of the CPU and
indices on it), ``numpy()``, another device's generator. As with CUDA, autograd runs hooks in a thread of its
own, ``map_location`` moves everything that a file holds, and autocast computes normalisations, sums and
losses in fp32.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _foreach_utils
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "sim"
HOST = torch.device("cpu")
aten = torch.ops.aten


class _Backend:
    """What torch asks of the module of a device."""

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def manual_seed_all(self, seed: int) -> None:
        """The draws are those of the CPU's generator."""

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


_setup_privateuseone_for_python_backend(NAME, _Backend())
DEVICE = torch.device(NAME, 0)

_COPIES = {
    aten.copy_.default,
    aten.copy.default,
    aten._to_copy.default,
    aten._foreach_copy_.default,
}
_INDEXING = {
    aten.index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}


class DeviceTensor(torch.Tensor):
    """A tensor of the device around the tensor of the CPU that holds its values."""

    host: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, host: Tensor) -> "DeviceTensor":
        # Views made under inference mode need the counters of an ordinary tensor.
        with torch.inference_mode(False):
            made = torch.Tensor._make_wrapper_subclass(
                cls,
                host.size(),
                strides=host.stride(),
                storage_offset=host.storage_offset(),
                dtype=host.dtype,
                device=DEVICE,
            )
        made.host = host
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"):
            return func.decompose(*args, **kwargs)
        return _run(func, args, kwargs)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"can't convert {DEVICE} device type tensor to numpy. Use Tensor.cpu()")

    __array__ = numpy

    def __reduce_ex__(self, _: Any) -> Any:
        return DeviceTensor, (self.detach().host,)

    def __repr__(self) -> str:
        return f"DeviceTensor({self.host})"


_generator, _load = torch.Generator, torch.load
_generators: list[torch.Generator] = []


class DeviceGenerator(torch.Generator):
    """A generator of the device, or of another one when that is asked for."""

    def __new__(cls, device: Any = HOST) -> Any:
        if torch.device(device).type != NAME:
            return _generator(device)
        made = super().__new__(cls)
        _generators.append(made)  # known by its address, which is not to be given away again
        return made


def _run(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    flat, spec = tree_flatten((args, kwargs))
    given = {id(item.host): item for item in flat if isinstance(item, DeviceTensor)}
    asked = kwargs.get("device")
    here = bool(given) if asked is None else torch.device(asked).type == NAME
    if given and func not in _COPIES:
        _refuse_other_devices(func, args, flat)
    if here and _is_foreign(kwargs.get("generator")):
        raise RuntimeError(f"Expected a '{NAME}' device type for generator but found 'cpu'")
    host_args, host_kwargs = tree_unflatten([_on_host(item) for item in flat], spec)
    host_kwargs.pop("pin_memory", None)
    with torch.inference_mode(False):
        out = func(*host_args, **host_kwargs)
    if any(item.shape != item.host.shape for item in given.values()):
        raise NotImplementedError(f"{func} changes a size in place")

    def back(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        if id(item) in given:
            return given[id(item)]
        return DeviceTensor(item) if here else item

    return tree_map(back, out)


def _is_foreign(generator: Any) -> bool:
    known = [made._cdata for made in _generators]
    return generator is not None and generator._cdata not in known


def _on_host(item: Any) -> Any:
    if isinstance(item, DeviceTensor):
        return item.host
    return HOST if isinstance(item, torch.device) else item


def _refuse_other_devices(func: Any, args: tuple[Any, ...], flat: list[Any]) -> None:
    checked = [args[0], *args[2:3]] if func in _INDEXING else flat
    for item in checked:
        if isinstance(item, Tensor) and not isinstance(item, DeviceTensor) and item.ndim:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found {DEVICE} and cpu ({func})"
            )


# What no tensor of the device is an argument of, and what torch calls past the class above.
_DIRECT = (
    "copy_",
    "_to_copy",
    "_local_scalar_dense",
    "empty_strided",
    "empty.memory_format",
    "detach",
    "alias",
    "arange",
    "arange.start",
    "arange.start_step",
    "randperm",
    "eye",
    "linspace",
)
# CUDA's lists, as far as models here meet them.
_LOWER = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "conv1d", "conv2d", "conv3d")
_LOWER = (*_LOWER, "scaled_dot_product_attention")
_FP32 = ("layer_norm", "group_norm", "rms_norm", "nll_loss", "cross_entropy_loss", "rsqrt", "exp")
_FP32 = (*_FP32, "log", "cumsum", "prod", "sum", "sum.dim_IntList", "pow.Tensor_Scalar")
_FP32 = (*_FP32, "softmax.int", "log_softmax.int", "linalg_vector_norm", "reciprocal")


def _overload(name: str) -> Any:
    base, _, overload = name.partition(".")
    return getattr(getattr(aten, base), overload or "default")


def _direct(func: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: _run(func, args, kwargs)


def _autocast(func: Any, lower: bool) -> Callable[..., Any]:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def kernel(*args: Any, **kwargs: Any) -> Any:
        wanted = torch.get_autocast_dtype(NAME) if lower else torch.float32

        def cast(item: Any) -> Any:
            low = isinstance(item, DeviceTensor) and item.dtype in (torch.float32, torch.bfloat16)
            return item.to(wanted) if low else item

        with torch._C._ExcludeDispatchKeyGuard(keys):
            args, kwargs = tree_map(cast, (args, kwargs))
            return func(*args, **kwargs)

    return kernel


_anything = torch.library.Library("_", "IMPL")
_anything.fallback(lambda func, *args, **kwargs: _run(func, args, kwargs), "PrivateUse1")
_anything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
_some = torch.library.Library("aten", "IMPL")
for _name in _DIRECT:
    _some.impl(_name, _direct(_overload(_name)), "PrivateUse1")
for _name in (*_LOWER, *_FP32):
    _some.impl(_name, _autocast(_overload(_name), _name in _LOWER), "AutocastPrivateUse1")

# `Module.to` keeps its parameters' identity, and optimisers take their fast way, as with CUDA.
torch.__future__.set_swap_module_params_on_conversion(True)
_foreach_utils._foreach_supported_types.append(DeviceTensor)  # type: ignore[attr-defined]
torch.serialization.add_safe_globals([DeviceTensor])


def _load_to(file: Any, map_location: Any = None, **options: Any) -> Any:
    found = _load(file, map_location="cpu", **options)
    if map_location is None:
        return found
    return tree_map(lambda i: i.to(map_location) if isinstance(i, Tensor) else i, found)


torch.Generator = DeviceGenerator  # type: ignore[assignment,misc]
torch.load = _load_to
