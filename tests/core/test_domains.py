"""Domains are compared as A-labels."""

import pytest

from sso.core.domains import domain_key

STRASSE = "xn--strae-oqa.de"


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("Example.COM", "example.com"),
        ("straße.de", STRASSE),
        ("STRAßE.de", STRASSE),
        ("strasse.de", "strasse.de"),
        ("XN--STRAE-OQA.DE", STRASSE),
        ("bücher.example", "xn--bcher-kva.example"),
        ("bu\u0308cher.example", "xn--bcher-kva.example"),
        ("ＢÜCHER．example", "xn--bcher-kva.example"),
        ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
        ("ab_c.example", "ab_c.example"),
        ("", ""),
    ],
)
def test_domain_key_is_the_a_label_in_lower_case(domain: str, expected: str) -> None:
    assert domain_key(domain) == expected


@pytest.mark.parametrize("domain", ["-ß-.de", "a\u200d.ß", "ß" * 300, "x..ß", "💩.la"])
def test_invalid_domain_is_only_normalised(domain: str) -> None:
    assert domain_key(domain) == domain_key(domain.upper().replace("SS", "ß"))
    assert not domain_key(domain).isascii()
