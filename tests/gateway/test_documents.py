"""Documents that must stay true: settings, links, policies."""

import re
from pathlib import Path

import pytest

from gateway.cli.settings_page import page
from policies.loader import PolicyError, default_names, load_policy, parse_policy
from policies.model import Policy

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_settings_is_the_table() -> None:
    assert (ROOT / "docs" / "settings.md").read_text() == page()


def test_every_link_of_the_readme_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).is_file(), target


@pytest.mark.parametrize("name", default_names())
def test_shipped_policies_load(name: str) -> None:
    assert load_policy(name).name == name


def test_every_field_of_a_policy_is_documented() -> None:
    text = (ROOT / "docs" / "policies.md").read_text()
    for field in Policy.model_fields:
        if field not in ("name", "description"):
            assert f"`{field}" in text, field


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        ("budgett: {}", 1, "unknown field"),
        ("on_pool_exhausted: maybe", 1, "on_pool_exhausted"),
        ("patterns:\n  - {name: x, regex: '^07[0-9]{9}$'}", 2, "can not match inside"),
        ("patterns:\n  - {name: x, regex: '('}", 2, "not a regular expression"),
        ("deny:\n  - {text: a, type: PERSONN}", 2, "unknown entity type"),
    ],
)
def test_faults_come_with_line_and_mend(change: str, line: int, said: str) -> None:
    entities = (ROOT / "policies/defaults/balanced.yaml").read_text().split("budget:")[0]
    above = entities.count("\n")
    text = f"{entities}{change}\n"
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "mine.yaml")
    assert f"mine.yaml:{above + line}:" in str(caught.value)
    assert said in str(caught.value)
