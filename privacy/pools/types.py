"""The fine types that have a pool, and the place types among them."""

from typing import Final

GIVEN: Final = "person.given"
FAMILY: Final = "person.family"
ORG: Final = "org"
COUNTRY: Final = "loc.country"
REGION: Final = "loc.region"
CITY: Final = "loc.city"
STREET: Final = "loc.street"

FINE_TYPES: Final = (GIVEN, FAMILY, ORG, COUNTRY, REGION, CITY, STREET)
PLACE_TYPES: Final = (COUNTRY, REGION, CITY, STREET)

# Sizes of the first level ("primary"); what is left forms the second level ("enlarge").
PRIMARY_SIZE: Final = {
    GIVEN: 3_000,
    FAMILY: 10_000,
    ORG: 6_000,
    COUNTRY: 400,
    REGION: 600,
    CITY: 6_000,
    STREET: 3_000,
}
LARGEST_SIZE: Final = {
    GIVEN: 4_500,
    FAMILY: 18_000,
    ORG: 12_000,
    COUNTRY: 400,
    REGION: 3_000,
    CITY: 12_000,
    STREET: 6_000,
}


class PoolError(Exception):
    """A pool artefact is missing, damaged or does not fit; the message says what to do."""
