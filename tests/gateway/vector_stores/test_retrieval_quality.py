"""Each question of the demonstration finds its document among the first three chunks."""

from collections.abc import Iterator

import pytest
from documents_app import SAMPLES, Gateway, open_gateway

QUESTIONS = [
    (
        "Who signed the supply contract with Brunnholt Glaswerke?",
        "supply-contract.md",
        "Ilse Varga",
    ),
    ("Which company supplies the optical glass?", "supply-contract.md", "Brunnholt Glaswerke GmbH"),
    ("Who is the treating doctor of Henrik Aldous?", "medical-letter.txt", "Amina Okonkwo"),
    ("Who manages the Basel office?", "office-directory.html", "Tobias van der Linden"),
    (
        "Which company owns the office building in Basel?",
        "lease-basel.pdf",
        "Tessenbach Immobilien AG",
    ),
    ("Who is the caretaker of the office building?", "lease-basel.pdf", "Matthias Brüggemann"),
    ("Who keeps the key to the server room?", "chat-service-desk.txt", "Priya Raghunathan"),
    ("Which company repairs the laptops?", "chat-service-desk.txt", "Fennick Datentechnik GmbH"),
    ("Who runs the payroll?", "hr-notes.txt", "Nadia Petrescu"),
    (
        "Which company repairs the air conditioning in Basel?",
        "air-conditioning.eml",
        "Nordfirn Kältetechnik",
    ),
    ("Who reported the broken lenses?", "complaint-broken-lenses.eml", "Imogen Harcourt"),
    ("Who organises the stand in Lyon?", "travel-and-fairs.md", "Gwendolyn Ashcombe-Price"),
    ("Who leads the travel desk?", "travel-and-fairs.md", "Séverine Blanchet"),
]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, str]]:
    with open_gateway(tmp_path_factory.mktemp("samples")) as gateway:
        api = gateway.acme
        files = [
            api.files.create(file=(path.name, path.read_bytes()), purpose="assistants").id
            for path in sorted(SAMPLES.iterdir())
            if path.is_file() and path.name not in ("README.md", "make_pdf.py")
        ]
        store = api.vector_stores.create(name="samples")
        batch = api.vector_stores.file_batches.create_and_poll(store.id, file_ids=files)
        assert batch.file_counts.completed == len(files) == 9
        yield gateway, store.id


@pytest.mark.parametrize(("question", "file", "fact"), QUESTIONS)
def test_question_finds_its_document(
    samples: tuple[Gateway, str], question: str, file: str, fact: str
) -> None:
    gateway, store = samples
    found = gateway.acme.vector_stores.search(store, query=question, max_num_results=3)
    texts = [hit.content[0].text for hit in found.data if hit.filename == file]
    assert any(fact in " ".join(text.split()) for text in texts)
