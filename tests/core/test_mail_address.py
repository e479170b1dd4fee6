"""Validation of e-mail addresses."""

from email.message import EmailMessage

import pytest

from sso.core.mail_address import check_mail_address
from sso.mail.smtp import build_message

GOOD = [
    "ann@example.com",
    "Ann.B+tag@Sub.Example.com",
    "o'neil@example.com",
    "!#$%&'*+-/=?^_`{|}~@example.com",
    "a@b",
    "a@xn--strae-oqa.de",
    "ünï@exämple.de",
    "用户@例え.jp",
    "a" * 64 + "@example.com",
    "a@" + ".".join(["b" * 61] * 4),
]
BAD = [
    "",
    "ann",
    "@example.com",
    "ann@",
    "grp:;@example.com",
    "a@[1.2.3.4",
    "a@[1.2.3.4]",
    "a@1.2.3.4",
    "a b@example.com",
    '"a b"@example.com',
    "a(comment)@example.com",
    "<b>a@example.com",
    "a@<i>.example",
    "Ann <ann@example.com>",
    "a@example.com,b@example.com",
    "a;b@example.com",
    "a@b@example.com",
    ".a@example.com",
    "a.@example.com",
    "a..b@example.com",
    "a@example..com",
    "a@.example.com",
    "a@example.com.",
    "a@-example.com",
    "a@example-.com",
    "a@exa_mple.com",
    "a" * 65 + "@example.com",
    "a@" + "b" * 64 + ".com",
    "a@" + ".".join(["b" * 62] * 5),
    "a\n@example.com",
    "a@example.com\nBcc: b@example.com",
    "a\x00@example.com",
    "a\u200b@example.com",
    "a\u2028@example.com",
    "\N{PILE OF POO}@example.com",
    "a@\N{PILE OF POO}.com",
    "a\ud800@example.com",
    "a@xn--\u00e4.de",
]


@pytest.mark.parametrize("address", GOOD)
def test_mail_address_is_accepted_and_a_message_to_it_can_be_built(address: str) -> None:
    assert check_mail_address(address) == address
    message = build_message("sso@example.com", address, "Subject", "Text")
    (recipient,) = message["To"].addresses
    assert recipient.username == address.rpartition("@")[0]
    assert recipient.domain.isascii()
    assert isinstance(message, EmailMessage)
    assert message.as_bytes()


@pytest.mark.parametrize("address", BAD)
def test_invalid_mail_address_is_rejected(address: str) -> None:
    with pytest.raises(ValueError, match=r"^must be an e-mail address such as name@example\.com$"):
        check_mail_address(address)


def test_message_to_an_international_domain_names_it_in_ascii() -> None:
    message = build_message("sso@example.com", "ann@straße.de", "Subject", "Text")
    assert message["To"] == "ann@xn--strae-oqa.de"
