"""Writes ``lease-basel.pdf``, the one sample that cannot be edited as text.

Run it in this folder after changing the text: ``python make_pdf.py``.  The output has no date and
no random id, so the same text gives the same bytes.  Only what the page needs of PDF 1.4 is
written: one standard font in WinAnsi encoding, one content stream a page.
"""

from pathlib import Path

PAGES = (
    """Lease of office space

Landlord: Tessenbach Immobilien AG, Kirschallee 40, 4052 Basel
Tenant: Lumenvale Optics AG, Färbersteg 14, 4058 Basel
Contract number: M-2021-0093

1. The rooms
The office building in Basel belongs to Tessenbach Immobilien AG. The tenant
rents the ground floor and the second floor, 640 square metres, with twelve
parking places. The rooms are used as offices and for product demonstrations.

2. Rent
The rent is CHF 14,250 a month, payable in advance to the account
CH93 0076 2011 6238 5295 7. Costs for heating and water are settled in June.
The deposit of CHF 42,750 is held in an account in the tenant's name.

3. Contact
The caretaker of the office building is Matthias Brüggemann. He can be reached
on +49 40 66969 127 on working days from 7 to 16. Damage is to be reported to
him at once. Mr Brüggemann's deputy is Kaspar Ölhafen-Roth.
""",
    """4. Term
The lease began on 1 May 2021 and runs until 30 April 2031. The tenant may
extend it by five years with a letter to the landlord before 31 October 2030.

5. Alterations
Alterations need the landlord's consent. The air conditioning was installed by
the tenant in 2022 and remains the tenant's property.

6. Signatures
The lease was signed for the landlord by Clémentine Tessenbach and for the
tenant by Tobias van der Linden. Both signed in Basel on 26 March 2021 before
the notary Dr. iur. Regula Aebischer-Stöckli.

TESSENBACH, CLÉMENTINE
c.tessenbach@tessenbach.example.net

VAN DER LINDEN, TOBIAS
t.vanderlinden@lumenvale.example.com
""",
)


def _content(page: str) -> bytes:
    lines = []
    for line in page.splitlines():
        escaped = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        lines.append(b"(" + escaped.encode("cp1252") + b") Tj T*")
    return b"BT /F1 11 Tf 15 TL 64 780 Td\n" + b"\n".join(lines) + b"\nET\n"


def build(pages: tuple[str, ...] = PAGES) -> bytes:
    """Return the PDF document with one A4 page per string."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for i, page in enumerate(pages):
        stream = _content(page)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * i} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"endstream")
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


if __name__ == "__main__":
    Path(__file__).with_name("lease-basel.pdf").write_bytes(build())
