"""DP-BiTFiT: differentially private fine-tuning of bias terms (DESIGN 8.1).

``train`` runs a configured job; ``make_private`` is the step underneath for a loop of one's own.
"""

from learning.bitfit.accountant import Accountant, calibrate
from learning.bitfit.added import add_biases, remove_biases
from learning.bitfit.config import FineTuning, Phase
from learning.bitfit.data import Data, TensorData, tokenized
from learning.bitfit.delta import Applied, apply_delta, read_card
from learning.bitfit.engine import PrivacySettings, PrivateModel, make_private
from learning.bitfit.errors import CheckpointError, PrivacyError
from learning.bitfit.events import Event
from learning.bitfit.losses import causal_lm_loss, classification_loss
from learning.bitfit.sampler import PoissonSampler, microbatches
from learning.bitfit.trainer import TrainResult, train

__all__ = [
    "Accountant",
    "Applied",
    "CheckpointError",
    "Data",
    "Event",
    "FineTuning",
    "Phase",
    "PoissonSampler",
    "PrivacyError",
    "PrivacySettings",
    "PrivateModel",
    "TensorData",
    "TrainResult",
    "add_biases",
    "apply_delta",
    "calibrate",
    "causal_lm_loss",
    "classification_loss",
    "make_private",
    "microbatches",
    "read_card",
    "remove_biases",
    "tokenized",
    "train",
]
