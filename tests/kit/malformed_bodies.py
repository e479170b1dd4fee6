"""Bodies of requests that no endpoint accepts."""

FORM = "application/x-www-form-urlencoded"


BODIES: dict[str, tuple[str | None, bytes, set[int]]] = {
    "nothing": (FORM, b"", {303, 400, 401, 403}),
    "nothing of no type": (None, b"", {303, 400, 401, 403}),
    "a field twice": (FORM, b"csrf=a&csrf=b", {400}),
    "NUL": (FORM, b"login=%00&csrf=x", {400}),
    "raw NUL": (FORM, b"login=\x00&csrf=x", {400}),
    "a surrogate": (FORM, b"login=%ED%A0%80&csrf=x", {400}),
    "no UTF-8": (FORM, b"login=%FF&csrf=x", {400}),
    "raw bytes": (FORM, b"login=\xff\xfe&csrf=x", {400}),
    "overlong": (FORM, b"login=%C0%80&csrf=x", {400}),
    "a noncharacter": (FORM, b"login=%EF%BF%BF&csrf=x", {400}),
    "a byte order mark": (FORM, b"\xef\xbb\xbfcsrf=x", {400}),
    "a bad percent": (FORM, b"login=%zz&csrf=x", {400}),
    "a lone percent": (FORM, b"login=%", {400}),
    "a thousand fields": (FORM, b"&".join(b"a%d=" % number for number in range(1001)), {400}),
    "a list": (FORM, b"csrf[]=x&login[]=y&password[]=z&otp[]=1&id[]=2", {400, 403}),
    "30 kB": (FORM, b"login=" + b"a" * 30_000, {400, 403}),
    "300 kB": (FORM, b"login=" + b"a" * 300_000, {413}),
    "JSON": ("application/json", b'{"login": "a", "password": "b"}', {400, 401, 415}),
    "JSON said to be a form": (FORM, b'{"login": "a"}', {400, 403}),
    "multipart": ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n', {415}),
    "multipart without its boundary": ("multipart/form-data", b"x", {415}),
    "text": ("text/plain", b"csrf=x", {415}),
    "XML": ("application/xml", b"<a/>", {415}),
    "another charset": (f"{FORM}; charset=utf-16", b"csrf=x", {415}),
    "no media type": ("\xff\xfe;;=", b"csrf=x", {415}),
    "no type": (None, b"csrf=x", {400, 415}),
}  # fmt: skip


PIECES = (
    b"<script>",
    b"'",
    b'"',
    b"\\",
    b"%",
    b"\xff",
    b"\x00",
    b"\xed\xa0\x80",
    "é🎮".encode(),
    b"..",
    b"/",
    b"&=",
    b"a" * 300,
    b"1e400",
    b"[]",
)
