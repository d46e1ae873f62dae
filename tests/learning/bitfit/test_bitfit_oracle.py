"""Per-example gradients against a loop over the examples, and against Opacus."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from learning.bitfit import PrivacySettings, make_private
from learning.bitfit.select import Method, select

TOLERANCE = 1e-6


def relative(ours: Tensor, theirs: Tensor, floor: float) -> float:
    return float((ours - theirs).norm() / theirs.norm().clamp(min=floor))


@pytest.mark.parametrize("method", ["bitfit", "full", "last_layer"])
def test_gradients_norms_and_clipped_sum_equal_a_loop(
    architecture: Any, brute_force: Any, method: Method
) -> None:
    case = architecture
    if method == "last_layer" and case.head is None:
        case.head = "lm_head"
    exclude = case.exclude if method == "full" else ()
    names = [item.name for item in select(case.model, method, case.head, exclude)]
    expected = brute_force(case.model, case.loss, case.batch, names)
    norms = torch.stack([g.flatten(1).square().sum(1) for g in expected.values()]).sum(0).sqrt()
    bound = float(norms.median())
    settings = PrivacySettings(0.0, 1.0, bound, "abadi")
    private = make_private(case.model, settings, method=method, head=case.head, exclude=exclude)

    ours = private.per_example(case.loss, case.batch)
    assert ours or method == "full"
    for name, value in ours.items():
        # The bias of a key is without effect on the softmax: its gradient is rounding.
        assert relative(value, expected[name], 1e-6) < TOLERANCE, name
    assert relative(private.per_example_norms(case.loss, case.batch), norms, 0) < TOLERANCE

    private.accumulate(case.loss, case.batch)
    optimizer = torch.optim.SGD(private.parameters, lr=1.0)
    before = [parameter.detach().clone() for parameter in private.parameters]
    private.step(optimizer)
    moved = torch.cat(
        [(b - p).detach().flatten() for b, p in zip(before, private.parameters, strict=True)]
    )
    factor = (bound / norms).clamp(max=1)
    total = [torch.einsum("b,b...->...", factor, expected[name]).flatten() for name in names]
    assert relative(moved, torch.cat(total), 0) < 1e-5


@pytest.mark.usefixtures("quiet")
def test_bias_gradients_equal_those_of_opacus(architecture: Any) -> None:
    from opacus import GradSampleModule

    case = architecture
    names = [item.name for item in select(case.model, "bitfit", case.head)]
    other = copy.deepcopy(case.model)
    for name, parameter in other.named_parameters():
        parameter.requires_grad_(name in names)
    wrapped = GradSampleModule(other, loss_reduction="sum", strict=False)
    for module in wrapped.modules():  # it records in training mode only
        module.training = not isinstance(module, torch.nn.Dropout)
    case.loss(wrapped, case.batch).sum().backward()
    theirs = {n.removeprefix("_module."): p for n, p in wrapped.named_parameters()}

    private = make_private(case.model, PrivacySettings(0.0, 1.0), head=case.head)
    for name, ours in private.per_example(case.loss, case.batch).items():
        assert relative(ours, theirs[name].grad_sample, 1e-6) < TOLERANCE, name


def test_fp32_gradients_equal_the_loop(architecture: Any, brute_force: Any) -> None:
    case = architecture
    case.model.float()
    case.batch = {k: v.float() if v.is_floating_point() else v for k, v in case.batch.items()}
    names = [item.name for item in select(case.model, "bitfit", case.head)]
    expected = brute_force(case.model, case.loss, case.batch, names)
    private = make_private(case.model, PrivacySettings(0.0, 1.0), head=case.head)
    ours = private.per_example(case.loss, case.batch)
    joined = [torch.cat([g[name].flatten() for name in names]) for g in (ours, expected)]
    assert relative(joined[0], joined[1], 0) < 2e-6
