"""Mechanisms that draw substitutes from public pools (DESIGN 3.1, 3.2, 3.8)."""

from privacy.mechanisms.base import Draw, Forbidden, Mechanism, MechanismError, PoolExhausted
from privacy.mechanisms.dates import draw_shift, shift_charge
from privacy.mechanisms.depletion import Depletion, depletion
from privacy.mechanisms.exclusions import Exclusions, exclusion_charge, exclusions
from privacy.mechanisms.exponential import ExponentialMechanism
from privacy.mechanisms.paper import PaperMechanism
from privacy.mechanisms.registry import make_mechanism, mechanism_names, register_mechanism
from privacy.mechanisms.uniform import UniformMechanism

__all__ = [
    "Depletion",
    "Draw",
    "Exclusions",
    "ExponentialMechanism",
    "Forbidden",
    "Mechanism",
    "MechanismError",
    "PaperMechanism",
    "PoolExhausted",
    "UniformMechanism",
    "depletion",
    "draw_shift",
    "exclusion_charge",
    "exclusions",
    "make_mechanism",
    "mechanism_names",
    "register_mechanism",
    "shift_charge",
]
