"""Closed-form starts of the projection, so that training begins where the prefix means something.

Stage 1: ridge regression from clean public rows to the mean of the decoder's own embeddings of the text
under each row.  Stage 2: the best linear map from noised rows to what stage 1's projection gives for the
clean ones; the server noises public rows itself for it, with the mechanism it will be sent.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from learning.ppft.dataset import DatasetError, RowData
from learning.ppft.model import PpftModel
from privacy.ppft.noise import Noise
from privacy.ppft.rows import unit
from privacy.randomness import Randomness

Matrix = NDArray[np.float64]


def ridge(x: Matrix, y: Matrix, penalty: float) -> tuple[Matrix, Matrix]:
    """Return weights (d_x, d_y) and bias (d_y,) of ridge regression, the bias not penalised.

    Args:
        x, y: (n, d_x) and (n, d_y).
        penalty: λ as a share of the mean variance of x.
    """
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    centred = x - mean_x
    gram = centred.T @ centred
    # Rows that are all alike vary by rounding alone; nothing is told by that, and the bias is all.
    rounding = np.finfo(np.float64).eps * (x**2).sum()
    gram[np.diag_indices_from(gram)] += max(penalty * np.trace(gram), rounding) / len(gram)
    weights = np.linalg.solve(gram, centred.T @ (y - mean_y))
    return weights, mean_y - mean_x @ weights


def align_clean(
    model: PpftModel, data: RowData, penalty: float = 0.03, most: int = 20_000
) -> float:
    """Set the projection from public rows and the text under them.

    Returns:
        Share of the targets' variance explained.

    Raises:
        DatasetError: The dataset has no windows of text.
    """
    if not data.windows:
        raise DatasetError("the projection is initialised from a public dataset (export --public)")
    x = np.concatenate(data.rows)[:most].astype(np.float64)
    texts = [window for record in data.windows for window in record][:most]
    y = _targets(model, texts)
    weights, bias = ridge(x, y, penalty)
    _assign(model, weights, bias)
    rest = y - x @ weights - bias
    return float(1.0 - (rest**2).sum() / ((y - y.mean(axis=0)) ** 2).sum())


def align_noisy(
    model: PpftModel, rows: Sequence[NDArray[np.float32]], noise: Noise, random: Randomness
) -> None:
    """Replace the projection by its best linear counterpart for noised rows.

    Args:
        rows: Clean public rows.
        noise: The mechanism that the exported rows went through.
        random: Source of the public rows' noise.
    """
    clean = np.concatenate(rows).astype(np.float64)
    noisy = unit(clean + noise.draw(len(clean), clean.shape[1], random))
    weight = model.projection.weight.detach().cpu().double().numpy().T
    wanted = clean @ weight + model.projection.bias.detach().cpu().double().numpy()
    _assign(model, *ridge(noisy, wanted, 1e-3))


def _targets(model: PpftModel, texts: Sequence[str]) -> Matrix:
    table = model.network.get_input_embeddings().weight.detach().float().cpu().numpy()
    out = np.zeros((len(texts), table.shape[1]))
    for number, text in enumerate(texts):
        ids = model.decoder.ids(f" {text}")
        out[number] = table[ids].mean(axis=0)
    return out


def _assign(model: PpftModel, weights: Matrix, bias: Matrix) -> None:
    with torch.no_grad():
        model.projection.weight.copy_(torch.from_numpy(weights.T).float())
        model.projection.bias.copy_(torch.from_numpy(bias).float())
