// A web site with Express and openid-client whose users sign in at the service.
import { randomBytes } from "node:crypto";
import express from "express";
import session from "express-session";
import * as oidc from "openid-client";

const SITE = "http://127.0.0.1:3000";
const config = await oidc.discovery(
  new URL("http://localhost:8000"), "express-site", process.env.CLIENT_SECRET, undefined,
  { execute: [oidc.allowInsecureRequests] }, // http, for this machine only: remove it elsewhere
);

const app = express();
app.use(session({
  secret: randomBytes(32).toString("hex"), // in production a value that stays the same
  resave: false, saveUninitialized: false, cookie: { sameSite: "lax" },
}));

app.get("/", (request, response) => {
  const { user } = request.session;
  response.json(user ? { user_id: user.sub, name: user.name, email: user.email } : { sign_in: `${SITE}/login` });
});

app.get("/login", async (request, response) => {
  const checks = { pkceCodeVerifier: oidc.randomPKCECodeVerifier(), expectedState: oidc.randomState() };
  request.session.checks = checks;
  response.redirect(oidc.buildAuthorizationUrl(config, {
    redirect_uri: `${SITE}/callback`,
    scope: "openid email profile",
    state: checks.expectedState,
    code_challenge: await oidc.calculatePKCECodeChallenge(checks.pkceCodeVerifier),
    code_challenge_method: "S256",
  }).href);
});

app.get("/callback", async (request, response) => {
  const tokens = await oidc.authorizationCodeGrant(config, new URL(request.url, SITE), request.session.checks);
  request.session.regenerate(() => {
    request.session.user = tokens.claims();
    request.session.idToken = tokens.id_token;
    response.redirect("/");
  });
});

app.get("/logout", (request, response) => {
  const { idToken } = request.session;
  request.session.destroy(() => response.redirect(oidc.buildEndSessionUrl(config, {
    id_token_hint: idToken, post_logout_redirect_uri: `${SITE}/`,
  }).href));
});

app.listen(new URL(SITE).port, "127.0.0.1", () => console.log(`Open ${SITE}/`));
