"""What the embedding-only path (PPFT, DESIGN 8.2) does inside the trust boundary: pure functions.

Token states are pooled, brought to unit norm, noised, renormalised, packed.  Both ends share the task
enumeration and the wire format.  Source: "Text-free Inference Through Alignment and Adaptation".
"""
