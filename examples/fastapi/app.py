"""A web site with FastAPI and Authlib whose users sign in at the service."""

import os
import secrets
from typing import Annotated, Any

from authlib.integrations.starlette_client import OAuth
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse
from starlette.middleware.sessions import SessionMiddleware

ISSUER = "http://localhost:8000"

app = FastAPI()
app.add_middleware(SessionMiddleware, secret_key=secrets.token_hex())  # in production a value that stays the same
sso = OAuth().register(
    "sso",
    server_metadata_url=f"{ISSUER}/.well-known/openid-configuration",
    client_id="fastapi-site",
    client_secret=os.environ["CLIENT_SECRET"],
    client_kwargs={"scope": "openid email profile", "code_challenge_method": "S256"},
)


def signed_in_user(request: Request) -> dict[str, Any]:
    if "user" not in request.session:
        raise HTTPException(401, "not signed in: open /login")
    return request.session["user"]


User = Annotated[dict[str, Any], Depends(signed_in_user)]


@app.get("/")
async def me(user: User):
    """An endpoint for users who are signed in."""
    return {"user_id": user["sub"], "name": user.get("name"), "email": user["email"]}


@app.get("/login")
async def login(request: Request):
    return await sso.authorize_redirect(request, request.url_for("callback"))


@app.get("/callback")
async def callback(request: Request):
    tokens = await sso.authorize_access_token(request)  # verifies state, nonce and the ID token
    request.session["user"] = tokens["userinfo"]
    return RedirectResponse("/")


@app.get("/logout")
async def logout(request: Request):
    """Signs the user out of this site. The user stays signed in at the service."""
    request.session.clear()
    return {"signed_in": False}
