"""Quickstarts: the program of a framework with the values of a client, ready to copy.

The programs are those of ``examples``, which the tests of the quickstarts run.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "programs"
EXAMPLE_ISSUER = "http://localhost:8000"


@dataclass(frozen=True)
class Framework:
    key: str
    title: str
    example_client: str
    redirect_uri: str  # in the example; "" for a program without users
    file: str  # the name of the program
    example: str  # its path in ``examples``
    install: str
    run: str
    is_public: bool = False  # it cannot keep a secret

    def program(self, issuer: str, client_id: str) -> str:
        """Returns the program with the address of this service and the id of the client."""
        return _read(self.key).replace(EXAMPLE_ISSUER, issuer).replace(self.example_client, client_id)


FRAMEWORKS = {
    framework.key: framework
    for framework in (
        Framework(
            "flask", "Flask", "flask-site", "http://127.0.0.1:5000/callback", "app.py", "flask/app.py",
            "pip install flask authlib requests", "flask run --port 5000",
        ),
        Framework(
            "fastapi", "FastAPI", "fastapi-site", "http://127.0.0.1:8003/callback", "app.py", "fastapi/app.py",
            "pip install fastapi uvicorn authlib httpx itsdangerous", "uvicorn app:app --port 8003",
        ),
        Framework(
            "django", "Django", "django-site", "http://127.0.0.1:8002/accounts/oidc/sso/login/callback/",
            "settings.py", "django/settings.py", "pip install django 'django-allauth[socialaccount]'",
            "python manage.py migrate && python manage.py runserver 8002",
        ),
        Framework(
            "express", "Express (Node.js)", "express-site", "http://127.0.0.1:3000/callback", "server.js",
            "express/server.js", "npm install express express-session openid-client", "node server.js",
        ),
        Framework(
            "spring", "Spring Boot", "spring-site", "http://127.0.0.1:8080/login/oauth2/code/sso", "application.yml",
            "spring/application.yml", "# add org.springframework.boot:spring-boot-starter-oauth2-client",
            "mvn spring-boot:run",
        ),
        Framework(
            "single_page_app", "Single-page app (browser)", "single-page-app", "http://127.0.0.1:5173/", "index.html",
            "single_page_app/index.html", "npm install oidc-client-ts", "python3 -m http.server 5173",
            is_public=True,
        ),
        Framework(
            "service", "Service without users", "game-server", "", "service.py", "service/service.py",
            "pip install authlib requests", "python service.py",
        ),
    )
}  # fmt: skip


@cache
def _read(key: str) -> str:
    return (FOLDER / f"{key}.txt").read_text()
