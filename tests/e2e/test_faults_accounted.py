"""Every fault class of comparable systems that concerns the path of a request has its test here."""

import re
from pathlib import Path

# id -> family, as collected from public issue trackers of comparable systems.
FAMILIES = dict(
    line.split()
    for line in """
B01 span_overlap
B02 span_offset
B04 unicode_offset
B05 span_adjacent
B06 span_containment
B08 roundtrip
B09 roundtrip_duplicate
B10 detection_fn_case
B11 detection_fn_case
B13 detection_span_email
B14 detection_fn_internal_tld
B15 test_fixture_validity
B17 detection_fn_encoded
B18 long_input_truncation
B19 long_input_truncation
B21 detection_partial_multi
B22 config_regex
B24 detection_fp_code
B25 detection_fp_numbers
B27 detection_fp_migration_stamp
B28 detection_fp_common_word
B30 config_threshold
B31 consistency_request
B32 consistency_history
B34 consistency_vault
B35 consistency_faker
B36 collision_prefix
B37 collision_prefix
B39 collision_real_name
B40 collision_literal
B42 collision_constant
B43 restore_missing
B44 restore_variant
B46 restore_regex
B47 restore_fuzzy
B49 restore_documents
B50 restore_too_early
B51 double_masking
B52 prompt_injection_look
B53 streaming_split
B54 streaming_buffering
B56 streaming_crash
B57 streaming_passthrough
B59 streaming_noop
B60 streaming_rewrite_dropped
B62 tool_args_response
B63 tool_args_history
B65 tool_blocks_dropped
B66 json_broken
B67 json_nested_escape
B68 responses_input
B69 responses_instructions
B70 route_policy_gap
B71 provider_compat
B72 metadata_leak
B73 base64_corrupted
B74 image_metadata
B75 embeddings_mismatch
B76 ingestion_leak
B77 trace_leak
B78 concurrency_leak
B79 concurrency_leak
B80 session_stale_map
B81 session_key
B82 memory_leak
B83 fail_open
B84 fail_open
B85 history_not_scanned
B88 config_mode
B89 crash
B90 mask_not_effective
B91 perf_large_block
B92 perf_large_block
B94 network_call
B95 supply_chain
""".strip().splitlines()
)

_ID = re.compile(r"B\d\d")


def _tested() -> set[str]:
    """Return the ids in names of tests and in the tables that tests are parametrised with."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.name != Path(__file__).name:
            for line in path.read_text().splitlines():
                if line.startswith("def test_") or re.match(r'\s+"B\d\d": |@pytest.*"B\d\d"', line):
                    found.update(_ID.findall(line))
    return found


def test_every_fault_has_a_test() -> None:
    assert sorted(set(FAMILIES) - _tested()) == []


def test_no_test_names_an_unknown_fault() -> None:
    assert sorted(_tested() - set(FAMILIES)) == []
