"""Certificates of other services, which sign with the key of a certificate instead of a published key."""

from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from sso.core.keys import UnusableKey, algorithm_of

MAX_CERTIFICATE_BYTES = 16 * 1024
MAX_TRUSTED = 16
Certificate = x509.Certificate


class UnusableCertificate(Exception):
    """The certificate is not accepted; the text gives the reason."""


def load_certificates(pem: str) -> list[Certificate]:
    """Returns the certificates of a text in PEM. Raises UnusableCertificate."""
    try:
        certificates = x509.load_pem_x509_certificates(pem.encode())
    except ValueError:
        raise UnusableCertificate("must be certificates in PEM") from None
    if len(certificates) > MAX_TRUSTED:
        raise UnusableCertificate(f"must be at most {MAX_TRUSTED} certificates")
    return certificates


def load_certificate(der: bytes) -> Certificate:
    """Raises UnusableCertificate."""
    if len(der) > MAX_CERTIFICATE_BYTES:
        raise UnusableCertificate("too long")
    try:
        return x509.load_der_x509_certificate(der)
    except ValueError:
        raise UnusableCertificate("expected a certificate in DER") from None


def signing_key(
    certificate: Certificate, trusted: list[Certificate], organization: str, now: datetime
) -> rsa.RSAPublicKey:
    """Returns the RSA key of a certificate that is valid now. Raises UnusableCertificate.

    If there are trusted issuers, one of them must have issued it for this organization. Authorities for code signing
    have many customers, so the name counts as much as the signature.
    """
    _check_time(certificate, now)
    if trusted:
        _check_issuer(certificate, trusted, now)
        names = [name.value for name in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
        if names != [organization]:
            raise UnusableCertificate(f"expected the organization {organization}")
    try:
        key = certificate.public_key()
        if isinstance(key, rsa.RSAPublicKey) and algorithm_of(key):
            return key
    except (ValueError, UnsupportedAlgorithm, UnusableKey):
        pass
    raise UnusableCertificate("expected an RSA key of 2048 to 8192 bits")


def has_signed(key: rsa.RSAPublicKey, signature: bytes, text: bytes) -> bool:
    """Returns whether the signature is one of this key over the text: PKCS#1 v1.5 with SHA-256."""
    try:
        key.verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True


def _check_issuer(certificate: Certificate, trusted: list[Certificate], now: datetime) -> None:
    for issuer in trusted:
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            continue
        _check_time(issuer, now)
        return
    raise UnusableCertificate("not issued by one of the trusted certificates")


def _check_time(certificate: Certificate, now: datetime) -> None:
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise UnusableCertificate("expired or not valid yet")
