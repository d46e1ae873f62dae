"""Names and numbers that a field, a column or a key introduces."""

import pytest

from privacy.detection.engine import Detector
from privacy.detection.recognizers.person_column import PersonColumnRecognizer
from privacy.detection.recognizers.person_field import PersonFieldRecognizer
from privacy.detection.recognizers.person_file import PersonFileRecognizer
from privacy.detection.registry import default_recognizers


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"last_name": "Park", "firstName":"Will"}', ["Park", "Will"]),
        (r"{\"last_name\": \"Park\"}", ["Park"]),
        ("WHERE last_name = 'Okonkwo' AND first_name LIKE 'Ami%'", ["Okonkwo", "Ami"]),
        ("<c:last>Varga</c:last><last_name>Park</last_name>", ["Varga", "Park"]),
        ('Person(first="Ilse", last="Varga")', ["Ilse", "Varga"]),
        ("d['last_name'] = 'Grant'", ["Grant"]),
        ("surname: Grant, first name: Will", ["Grant", "Will"]),
        ("Nachname: Jung, Vorname: Heiner", ["Jung", "Heiner"]),
        ("**Last name:** Young\n- apellido: de la Cruz\n", ["Young", "de la Cruz"]),
        ("Patient name: Rose Park\nMy last name is Park.", ["Rose Park", "Park"]),
    ],
)
def test_a_field_tells_that_its_value_is_a_name(text: str, names: list[str]) -> None:
    spans = sorted(PersonFieldRecognizer().find(text), key=lambda s: s.start)
    assert [text[s.start : s.end] for s in spans] == names


@pytest.mark.parametrize(
    "text",
    [
        "last_name = name",
        "lastName: user.lastName",
        "last_name=data['x']; last_name = get_name(x)",
        '{"last_name": null, "lastName": "Last name", "first_name": {"type": "string"}}',
        "lastName: string;",
        "first: Monday, family: Roboto",
        "last_name VARCHAR(100), first_name TEXT",
        "The last name is required and the first name: optional",
    ],
)
def test_code_and_schemas_hold_no_names(text: str) -> None:
    assert PersonFieldRecognizer().find(text) == []
    assert PersonColumnRecognizer().find(text) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('id,first_name,last_name\n1,Will,Park\n2,"Hope","Young"\n\nx,y,z', "Will Park Hope Young"),
        ("| First name | Last name |\n|---|---|\n| Will | **Park** |", "Will Park"),
        ("Vorname;Nachname\r\nWill;Park\r\n", "Will Park"),
        (
            "INSERT INTO p (id, first_name, last_name) VALUES (1, 'Will', 'Park'), (2,'Hope','Young');",
            "Will Park Hope Young",
        ),
        ("patient_last_name;dob\nPark;x\n", "Park"),
        ("Voornaam;Achternaam\nWill;Park\n", "Will Park"),
        ("Förnamn,Efternamn\nWill,Park\n", "Will Park"),
        ("| Jméno | Příjmení |\n|---|---|\n| Will | Park |", "Will Park"),
        ("etunimi\tsukunimi\nWill\tPark\n", "Will Park"),
        ("id,Soyadı\n1,Park\n", "Park"),
        ("id,Family\n1,Varga\n", "Varga"),
        ("| Assignee | State |\n|---|---|\n| Varga | open |\n| Done | x |", "Varga"),
        ("name\tage\nVarga\t4\nwidget\t3", "Varga"),
        ("name,first_name and last_name are columns, and Will, Park left.", ""),
    ],
)
def test_the_head_of_a_column_tells_that_its_cells_are_names(text: str, names: str) -> None:
    spans = sorted(PersonColumnRecognizer().find(text), key=lambda s: s.start)
    assert [text[s.start : s.end] for s in spans] == names.split()


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('{"contact_phone": 4155550123, "phoneNumber": "4155550124"}', "4155550123 4155550124"),
        (
            '{"mrn": "00482913", "patientId": 88213, "medical_record_number": "A1234567"}',
            "00482913 88213 A1234567",
        ),
        ("<mrn>00482913</mrn> <policyNumber>77-1234</policyNumber>", "00482913 77-1234"),
        ("| MRN | 00482913 |\n**Patient ID**: 88213", "00482913 88213"),
        ("pesel_number: 44051401359, account_number=12345678", "44051401359 12345678"),
        ("Can u text my mom at 4155550123?", "4155550123"),
        ('{"product_id": 99887, "row_id": 4711, "error_code": 50012}', ""),
    ],
)
def test_numbers_in_named_fields(text: str, numbers: str) -> None:
    spans = [s for r in default_recognizers() for s in r.find(text) if s.score >= 0.5]
    found = {text[s.start : s.end]: s.start for s in spans}
    assert sorted(found, key=lambda word: found[word]) == numbers.split()


def test_a_record_number_in_groups_is_one() -> None:
    text = "Medical record no. 0012 3456, seen."
    spans = [s for r in default_recognizers() for s in r.find(text) if s.type == "RECORD_ID"]
    assert "0012 3456" in [text[s.start : s.end] for s in spans]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Open Varga_Ilse_contract.docx please.", "Varga Ilse"),
        (r"C:\docs\CV-Ilse-Varga.pdf, /srv/ilse_varga_2024.pdf", "Ilse Varga ilse varga"),
        ("scan%20Ilse%20Varga.jpg", "Ilse Varga"),
        ("20261130081502_add_users.sql test_ilse_varga.py read_me_first.txt annual_report.pdf", ""),
        ("ilse.varga@firm.example and docs.varga.ilse/index", ""),
    ],
)
def test_names_in_names_of_documents(text: str, names: str) -> None:
    found = [text[s.start : s.end] for s in PersonFileRecognizer().find(text)]
    assert found == names.split()


def test_a_long_table_is_read_below_its_head() -> None:
    rows = "Will,Park,4\n" * 3000
    texts = ["first_name,last_name,age\n" + rows]
    detector = Detector((PersonColumnRecognizer(),), None)
    assert len(detector.detect(texts)[0]) == 6000


def test_quotes_without_an_end_are_read_in_one_pass() -> None:
    text = "(first_name, b) VALUES ('" + "''" * 5000
    assert PersonColumnRecognizer().find(text) == []


def test_parameters_below_name_are_no_people() -> None:
    table = "| Name | Type |\n|---|---|\n| port | int |\n| hash | str |\n| marta varga | x |\n"
    spans = PersonColumnRecognizer().find(table)
    assert [table[s.start : s.end] for s in spans] == ["marta varga"]
