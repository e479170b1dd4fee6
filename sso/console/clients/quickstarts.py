"""Quickstarts: the program of a framework with the values of a client, ready to copy.

The programs are those of ``examples``, which the tests of the quickstarts run.
"""

from functools import cache
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).parent / "programs"
EXAMPLE_ISSUER = "http://localhost:8000"
OTHER = "other"  # any library, whose developer copies the values
PIP = "python3 -m venv .venv && . .venv/bin/activate && pip"  # Debian's Python installs packages only into a folder


class Framework(Struct, frozen=True):
    key: str
    title: str
    example_client: str
    redirect_uri: str  # in the example; "" for a program without users
    file: str = ""  # the name of the program; "" if there is none
    example: str = ""  # its path in ``examples``
    install: str = ""
    run: str = ""
    is_public: bool = False  # it cannot keep a secret
    grant_types: tuple[str, ...] = ()  # in place of the default
    profile: str = "oidc"
    id_alg: str = "ES256"  # which its library verifies, and which is cheap to sign; "": that of the main key
    others: str = ""  # what the program needs as well, in the folder of the example

    @property
    def about(self) -> str:
        if self.profile == "fapi2":
            return "Web site with keys: the FAPI 2.0 Security Profile"
        if self.is_public:
            return "Public client with PKCE" if self.redirect_uri else "Public client, confirmed on a phone"
        return "Web site with a secret" if self.redirect_uri else "Client credentials, no users"

    def program(self, issuer: str, client_id: str) -> str:
        """Returns the program with the address of this service and the id of the client; "" if there is none."""
        if not self.file:
            return ""
        return _read(self.key).replace(EXAMPLE_ISSUER, issuer).replace(self.example_client, client_id)


FRAMEWORKS = {
    framework.key: framework
    for framework in (
        Framework(
            "flask", "Flask", "flask-site", "http://127.0.0.1:5000/callback", "app.py", "flask/app.py",
            f"{PIP} install flask authlib requests", "flask run --port 5000",
        ),
        Framework(
            "fastapi", "FastAPI", "fastapi-site", "http://127.0.0.1:8003/callback", "app.py", "fastapi/app.py",
            f"{PIP} install fastapi uvicorn authlib httpx itsdangerous", "uvicorn app:app --port 8003",
        ),
        Framework(
            "django", "Django", "django-site", "http://127.0.0.1:8002/accounts/oidc/sso/login/callback/",
            "settings.py", "django/settings.py", f"{PIP} install django 'django-allauth[socialaccount]'",
            "python manage.py migrate && python manage.py runserver 8002", others="manage.py and urls.py",
        ),
        Framework(
            "express", "Express (Node.js)", "express-site", "http://127.0.0.1:3000/callback", "server.js",
            "express/server.js",
            "npm init -y && npm pkg set type=module && npm install express express-session openid-client",
            "node server.js",
        ),
        Framework(
            "nextjs", "Next.js (Auth.js)", "nextjs-site", "http://localhost:3002/api/auth/callback/sso", "auth.js",
            "nextjs/auth.js", "npm install next next-auth@beta react react-dom",
            "AUTH_SECRET=$(openssl rand -hex 32) npx next dev --port 3002", others="the folder app",
        ),
        Framework(
            "go", "Go", "go-site", "http://127.0.0.1:3001/callback", "main.go", "go/main.go", "go mod init site",
            "go run .",
        ),
        Framework(
            "php", "PHP", "php-site", "http://127.0.0.1:8005/callback", "index.php", "php/index.php",
            "sudo apt-get install php-cli php-curl", "php -S 127.0.0.1:8005 index.php",
        ),
        Framework(
            "dotnet", "C#", "csharp-site", "http://127.0.0.1:3003/callback", "Site.cs", "dotnet/Site.cs",
            "# copy sdk/csharp and sdk/unity of the repository to the folder of the site",
            "mcs -langversion:7 -r:System.Net.Http -out:site.exe Site.cs sdk/csharp/src/*.cs "
            "sdk/unity/com.sso.game/Runtime/Json.cs && mono site.exe", id_alg="",
        ),
        Framework(
            "spring", "Spring Boot", "spring-site", "http://127.0.0.1:8080/login/oauth2/code/sso", "application.yml",
            "spring/application.yml", "# add org.springframework.boot:spring-boot-starter-oauth2-client",
            "mvn spring-boot:run", id_alg="",
        ),
        Framework(
            "single_page_app", "Single-page app (browser)", "single-page-app", "http://127.0.0.1:5173/", "index.html",
            "single_page_app/index.html", "npm install oidc-client-ts", "python3 -m http.server 5173",
            is_public=True,
        ),
        Framework(
            "react", "React (browser)", "react-app", "http://127.0.0.1:5174/", "main.jsx", "react/main.jsx",
            "npm install react react-dom react-oidc-context oidc-client-ts vite",
            "npx vite --port 5174 --host 127.0.0.1", others="index.html", is_public=True,
        ),
        Framework(
            "service", "Service without users", "game-server", "", "service.py", "service/service.py",
            f"{PIP} install authlib requests", "python service.py", grant_types=("client_credentials",), id_alg="",
        ),
        Framework(
            "device", "Device (television, console, terminal)", "tv", "", "sign_in.sh", "device/sign_in.sh",
            "# needs curl and jq", "bash sign_in.sh", is_public=True,
            grant_types=("urn:ietf:params:oauth:grant-type:device_code",),
        ),
        Framework(
            "apache", "Apache (mod_auth_openidc)", "apache-site", "http://127.0.0.1:8004/protected/callback",
            "httpd.conf", "apache/httpd.conf", "sudo apt-get install apache2 libapache2-mod-auth-openidc",
            '/usr/sbin/apache2 -X -f "$PWD/httpd.conf"', others="the folder pages",
        ),
        Framework("fapi2", "Highest security (FAPI 2.0)", "bank", "https://bank.example/callback", profile="fapi2"),
        Framework(OTHER, "Other (OpenID Connect)", "my-site", "https://site.example/callback", id_alg=""),
    )
}  # fmt: skip


@cache
def _read(key: str) -> str:
    return (FOLDER / f"{key}.txt").read_text()
