"""Encodings of public keys, also of kinds that the service refuses."""

import base64


def length(size: int) -> bytes:
    if size < 128:
        return bytes([size])
    raw = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([128 + len(raw)]) + raw


def tagged(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + length(len(content)) + content


def rsa_der(n: int, e: int) -> bytes:
    """Returns PKCS#1 of any two numbers, including those that no library would encode."""

    def number(value: int) -> bytes:
        return tagged(2, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))

    return tagged(0x30, number(n) + number(e))


def diffie_hellman_der(bits: int) -> bytes:
    """Returns an X9.42 key, which OpenSSL checks while it loads it."""

    def number(value: int) -> bytes:
        return tagged(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))

    modulus, order = (1 << bits) - 159, (1 << 255) + 95
    name = tagged(6, bytes.fromhex("2a8648ce3e0201"))
    parameters = tagged(0x30, number(modulus) + number(modulus // 3) + number(order))
    return tagged(0x30, tagged(0x30, name + parameters) + tagged(3, b"\0" + number(modulus // 5)))


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
