"""What may be trained on, and the made-up sentences."""

import gzip
from pathlib import Path

import pytest

from learning.ner.corpora import Example
from learning.ner.dataset import CORPORA, load_dataset
from learning.ner.evaluate import TEST_FILES, load_test_set
from learning.ner.synthetic import NameLists, Writer, from_text, load_templates

LISTS = NameLists(
    given=("Ilse", "Tadeo"),
    family=("Varga", "Brandt"),
    world_given=("Ngozi",),
    world_family=("Okonkwo",),
    companies=("Acme Foods",),
    universities=("Lakeside University",),
    cities=("Budapest",),
)


def entities(example: Example) -> list[tuple[str, str]]:
    return [(" ".join(example.words[low:high]), kind) for low, high, kind in example.spans]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A collection of the real shape with two sentences a file."""
    files = [(c.name, file) for c in CORPORA for file in c.files]
    for name, file in [*files, ("wnut17", "test"), ("conll2003", "train")]:
        text = f"Ilse\tB-person\nin\tO\n{name}\tO\n{file}\tO\n\nhello\tO\n{name}\tO\n"
        write(tmp_path / name / f"{file}.bio.gz", text)
    for name in (
        "us_census_first_names_female",
        "us_census_first_names_male",
        "us_census_surnames",
        "world_forenames_romanized_cc0",
        "world_surnames_romanized_cc0",
        "sp500_companies",
        "nasdaq_nyse_issuers",
        "presidio_companies_orgs",
        "universities",
        "geonames_cities_over15k_datahub",
    ):
        write(tmp_path / "gazetteers" / f"{name}.txt.gz", "Alpha\nBeta\n")
    folder = tmp_path / "presidio_research"
    folder.mkdir()
    (folder / "templates.txt").write_text("Call {{person}} in {{city}}\\nsoon\n", encoding="utf-8")
    return tmp_path


def test_no_research_only_corpus_is_trained_on() -> None:
    names = {corpus.name for corpus in CORPORA}
    assert names.isdisjoint({"conll2003", "wikineural_en", "re3d"})
    assert all(
        "NC" not in corpus.licence and corpus.licence and corpus.attribution for corpus in CORPORA
    )


def test_test_files_are_never_read_for_training(collection: Path) -> None:
    dataset = load_dataset(collection, seed=1)
    words = {word for example in (*dataset.train, *dataset.validation) for word in example.words}
    assert "test" not in words
    assert "conll2003" not in words
    assert set(dataset.sha256) == {f"{c.name}/{f}" for c in CORPORA for f in c.files}


def test_a_missing_corpus_is_an_error(collection: Path) -> None:
    (collection / "btc" / "dev.bio.gz").unlink()
    with pytest.raises(FileNotFoundError):
        load_dataset(collection, seed=1)


def test_wikigold_is_split_without_overlap(collection: Path) -> None:
    text = "\n".join(f"Varga{number}\tB-PER\nx\tO\n" for number in range(400))
    write(collection / "wikigold" / "all.bio.gz", text)
    test = load_test_set(collection, "wikigold")
    train = load_dataset(collection, seed=1).train
    held_out = {text.split()[0] for text in test.texts}
    trained = {e.words[0] for e in train if e.words and e.words[0].startswith("Varga")}
    assert 30 < len(held_out) < 90
    assert held_out.isdisjoint(trained)
    assert len(held_out | trained) == 400


def test_test_sets_have_code_point_offsets(collection: Path) -> None:
    assert "wnut17" in TEST_FILES
    test = load_test_set(collection, "wnut17")
    assert test.texts[0].startswith("Ilse in")
    assert test.gold == (((0, 4, "PERSON"),), ())
    assert test.lower().texts[0].startswith("ilse in")


def test_fields_are_filled_and_marked() -> None:
    example = Writer(LISTS, 3).example("Ask {F} {L} of {U} in {C}, {K}")
    kinds = [kind for _, kind in entities(example)]
    assert kinds == ["PERSON", "ORG", "LOC", "LOC"]
    assert len(entities(example)[0][0].split()) >= 2


def test_plain_fields_are_no_entities() -> None:
    example = Writer(LISTS, 3).example("Card {{credit_card_number}} of a {{nationality}} {{job}}")
    assert example.spans == ()
    assert "Canadian" in example.words


def test_handles_and_addresses_are_no_person() -> None:
    example = Writer(LISTS, 3).example("write to @{f} or <{f}@example.com>")
    assert example.spans == ()


def test_same_seed_same_text() -> None:
    template = "{P} of {O} met {R} at {S}, {C}"
    assert Writer(LISTS, 5).example(template) == Writer(LISTS, 5).example(template)
    assert Writer(LISTS, 5).example(template) != Writer(LISTS, 6).example(template)


def test_templates_have_real_line_breaks(collection: Path) -> None:
    templates = load_templates(collection)
    assert "Call {{person}} in {{city}}\nsoon" in templates
    assert not any("\\n" in template for template in templates)


def test_spans_of_text_become_words() -> None:
    example = from_text("Hi Ilse  Varga!", [(3, 14, "PERSON")])
    assert example == Example(("Hi", "Ilse", "Varga", "!"), ((1, 3, "PERSON"),))
