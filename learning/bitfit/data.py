"""Training data as the trainer reads it: records by index."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from learning.bitfit.losses import IGNORED


class Data(Protocol):
    """Records of one data set. One record is the unit of privacy."""

    def __len__(self) -> int: ...

    def batch(self, indices: NDArray[np.int64]) -> Mapping[str, Tensor]:
        """The records as tensors whose first dimension is the record."""


class TensorData:
    """Records held in memory, padded to one length and cut to the longest of a batch.

    Args:
        tensors: Name to ``(N, ...)``. Where ``attention_mask`` ``(N, T)`` is present, every other
            tensor of that shape is cut with it.

    Raises:
        ValueError: No tensor, or different numbers of records.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        sizes = {len(tensor) for tensor in tensors.values()}
        if len(sizes) != 1:
            raise ValueError(f"every tensor needs the same number of records, found {sizes}")
        self._tensors = dict(tensors)
        (self._size,) = sizes

    def __len__(self) -> int:
        return self._size

    def batch(self, indices: NDArray[np.int64]) -> dict[str, Tensor]:
        """See `Data`."""
        rows = torch.from_numpy(indices)
        batch = {name: tensor[rows] for name, tensor in self._tensors.items()}
        mask = batch.get("attention_mask")
        if mask is None or not len(rows):
            return batch
        used = mask.any(0).nonzero()
        longest = int(used.max()) + 1 if len(used) else 1
        return {
            name: tensor[:, :longest] if tensor.shape == mask.shape else tensor
            for name, tensor in batch.items()
        }


def tokenized(
    encodings: list[list[int]], labels: list[int] | None = None, *, pad: int = 0
) -> TensorData:
    """Pad token ids to one length.

    Args:
        encodings: Token ids of each record.
        labels: Class of each record; None for language modelling, where a record predicts itself.
        pad: Id of the padding token.
    """
    longest = max((len(ids) for ids in encodings), default=1)
    input_ids = torch.full((len(encodings), longest), pad, dtype=torch.int64)
    mask = torch.zeros_like(input_ids)
    for row, ids in enumerate(encodings):
        input_ids[row, : len(ids)] = torch.tensor(ids, dtype=torch.int64)
        mask[row, : len(ids)] = 1
    if labels is None:
        target = input_ids.masked_fill(mask == 0, IGNORED)
    else:
        target = torch.tensor(labels, dtype=torch.int64)
    return TensorData({"input_ids": input_ids, "attention_mask": mask, "labels": target})
