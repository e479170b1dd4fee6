"""A web site with Flask and Authlib whose users sign in at the service."""

import os
import secrets

from authlib.integrations.flask_client import OAuth
from flask import Flask, redirect, render_template_string, session, url_for

ISSUER = "http://localhost:8000"
PAGE = """
<h1>Flask site</h1>
{% if user %}
<p>Signed in as {{ user.name }} ({{ user.email }}).</p>
<form method="post" action="/logout"><button>Sign out</button></form>
{% else %}
<p><a href="/login">Sign in</a></p>
{% endif %}
"""

app = Flask(__name__)
app.secret_key = secrets.token_hex()  # in production a random value that stays the same
sso = OAuth(app).register(
    "sso",
    server_metadata_url=f"{ISSUER}/.well-known/openid-configuration",
    client_id="flask-site",
    client_secret=os.environ["CLIENT_SECRET"],
    client_kwargs={"scope": "openid email profile", "code_challenge_method": "S256"},
)


@app.get("/")
def home():
    return render_template_string(PAGE, user=session.get("user"))


@app.get("/login")
def login():
    return sso.authorize_redirect(url_for("callback", _external=True))


@app.get("/callback")
def callback():
    tokens = sso.authorize_access_token()  # verifies state, nonce and the ID token
    session["user"] = tokens["userinfo"]  # its "sub" is the user id
    session["id_token"] = tokens["id_token"]
    return redirect("/")


@app.post("/logout")
def logout():
    """Signs the user out of this site and of the service."""
    session.pop("user", None)
    return sso.logout_redirect(url_for("home", _external=True), id_token_hint=session.pop("id_token", None))
