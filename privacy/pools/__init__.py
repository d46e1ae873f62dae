"""Public pools of names: what an original may be replaced with (DESIGN 3.2, 3.4)."""

from privacy.pools.artefact import PoolSet
from privacy.pools.build import build_embedding, build_pools, ensure_embedding
from privacy.pools.places import classify_place
from privacy.pools.pool import Pool
from privacy.pools.types import FINE_TYPES, PLACE_TYPES, PoolError

__all__ = [
    "FINE_TYPES",
    "PLACE_TYPES",
    "Pool",
    "PoolError",
    "PoolSet",
    "build_embedding",
    "build_pools",
    "classify_place",
    "ensure_embedding",
]
