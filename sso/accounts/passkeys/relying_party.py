"""The relying party of passkeys: the name that they are bound to, and the origin of the pages that may use them."""

from urllib.parse import urlsplit

from msgspec import Struct

from sso.core.brand import CurrentBrand
from sso.core.net import parse_address

LOCALHOST = "localhost"
DEFAULT_PORTS = {"http": 80, "https": 443}  # browsers leave them out of the origin


class RelyingParty(Struct, frozen=True):
    id: str
    origin: str
    brand: CurrentBrand

    @property
    def name(self) -> str:
        return self.brand.name

    @classmethod
    def from_base_url(cls, base_url: str, brand: CurrentBrand) -> "RelyingParty | None":
        """Returns None if browsers allow no passkeys for this URL: passkeys are bound to a host name, not an address.

        A loopback address is replaced by "localhost", so that passkeys can be tried out there.
        """
        url = urlsplit(base_url)
        host = url.hostname or ""
        try:
            address = parse_address(host)
        except ValueError:
            pass
        else:
            if not address.is_loopback:
                return None
            host = LOCALHOST
        port = f":{url.port}" if url.port and url.port != DEFAULT_PORTS[url.scheme] else ""
        return cls(host, f"{url.scheme}://{host}{port}", brand)
