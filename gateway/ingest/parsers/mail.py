"""Mail (.eml, RFC 5322): the headers that a reader sees and the body; attachments are not read."""

import email
import email.policy
from email.message import EmailMessage
from typing import Final

from gateway.ingest.parsers.base import Parsed, clean, invalid, require_text
from gateway.ingest.parsers.decoding import decode
from gateway.ingest.parsers.html import html_to_text

_SHOWN: Final = ("From", "To", "Cc", "Date", "Subject")


class MailParser:
    """One message; the plain body if it has one, else the HTML body as text."""

    name = "mail"
    extensions = (".eml",)

    def parse(self, data: bytes) -> Parsed:
        message = email.message_from_bytes(data, policy=email.policy.default)
        if not any(name in message for name in _SHOWN):
            raise invalid("The file is not a mail message: it has no mail headers.")
        headers = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
        body = require_text(_body(message), " Only the message body is read, not attachments.")
        subject = _header(message, "Subject")
        return Parsed(clean("\n".join(headers) + "\n\n" + body), clean(subject))


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message[name] or "")
    except Exception:  # the header parser of the standard library fails on some malformed ones
        return ""


def _body(message: EmailMessage) -> str:
    try:
        part = message.get_body(("plain", "html"))
    except Exception:  # malformed multipart structure
        part = None
    if part is None:
        return ""
    try:
        content = str(part.get_content())
    except Exception:  # an unknown charset or a wrong transfer encoding
        payload = part.get_payload(decode=True)
        content = decode(payload) if isinstance(payload, bytes) else ""
    return html_to_text(content)[0] if part.get_content_subtype() == "html" else clean(content)
