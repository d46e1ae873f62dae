"""Plain text, and formats that are read as such."""

from gateway.ingest.parsers.base import Parsed, clean, require_text
from gateway.ingest.parsers.decoding import decode


class TextParser:
    """Text in any common encoding."""

    name = "text"
    extensions = (
        *(".txt", ".text", ".log", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml"),
        *(".rst", ".tex", ".py", ".js", ".ts", ".java", ".c", ".cpp", ".cs", ".go", ".rb", ".php"),
        *(".sh", ".sql", ".toml", ".ini", ".cfg"),
    )

    def parse(self, data: bytes) -> Parsed:
        return Parsed(require_text(clean(decode(data))))
