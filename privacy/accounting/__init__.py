"""The privacy ledger's arithmetic and the exact audit (DESIGN 3.6, 3.7)."""

from privacy.accounting.audit import AuditReport, audit_pairs, audit_pool, dictionary_pairs
from privacy.accounting.charges import Charge
from privacy.accounting.divergence import hockey_stick, max_divergence
from privacy.accounting.totals import Bound, Totals, entity_totals, totals

__all__ = [
    "AuditReport",
    "Bound",
    "Charge",
    "Totals",
    "audit_pairs",
    "audit_pool",
    "dictionary_pairs",
    "entity_totals",
    "hockey_stick",
    "max_divergence",
    "totals",
]
