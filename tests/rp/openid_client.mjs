// A client that uses the unmodified openid-client library. Its settings are JSON in the first argument. It prints the
// authorization URL, reads the redirect URL from standard input, and prints the results as JSON.
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import * as oidc from "openid-client";

const site = JSON.parse(process.argv[2]);

// The strict profile, as a custom client authentication method of the library.
const sha1Bearer = (secret) => (as, client, body, headers) => {
  const hash = createHash("sha1").update(body.get("redirect_uri") + secret).digest("hex");
  headers.set("authorization", `Bearer ${hash}`);
};
const methods = {
  strict: () => sha1Bearer(site.secret),
  basic: () => oidc.ClientSecretBasic(site.secret),
  post: () => oidc.ClientSecretPost(site.secret),
  none: () => oidc.None(),
  fapi2: () => oidc.PrivateKeyJwt(signingKey),
};
// The key that signs the assertions of a client of the profile fapi2.
const subtle = globalThis.crypto.subtle;
const p256 = { name: "ECDSA", namedCurve: "P-256" };
const signingKey = site.jwk && {
  key: await subtle.importKey("jwk", site.jwk, p256, false, ["sign"]),
  kid: site.kid,
};

let config = await oidc.discovery(new URL(site.issuer), site.client_id, undefined, methods[site.method](), {
  execute: [oidc.allowInsecureRequests],
});
if (site.method === "strict") {
  // Answers to strict clients have no iss, although those to all others have one.
  const server = { ...config.serverMetadata(), authorization_response_iss_parameter_supported: false };
  config = new oidc.Configuration(server, site.client_id, undefined, methods.strict());
  oidc.allowInsecureRequests(config);
}
const verifier = oidc.randomPKCECodeVerifier();
const state = oidc.randomState();
const nonce = oidc.randomNonce();
// With a key, the tokens are bound to it (DPoP), and the authorization request is pushed (PAR).
const options = site.dpop ? { DPoP: oidc.getDPoPHandle(config, await oidc.randomDPoPKeyPair("ES256")) } : {};
const buildUrl = site.dpop ? oidc.buildAuthorizationUrlWithPAR : oidc.buildAuthorizationUrl;
const parameters = {
  redirect_uri: site.redirect_uri,
  scope: "openid offline_access email profile",
  response_mode: "query",
  code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  state,
  nonce,
};
const authorizationUrl = await buildUrl(config, parameters, options);
console.log(authorizationUrl.href);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const redirectUrl = new URL((await lines.next()).value);
const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true };
const tokens = await oidc.authorizationCodeGrant(config, redirectUrl, checks, undefined, options);
const userinfo = await oidc.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, options);
const refreshed = await oidc.refreshTokenGrant(
  config, tokens.refresh_token, { redirect_uri: site.redirect_uri }, options,
);
const newest = refreshed.refresh_token ?? tokens.refresh_token; // fapi2 does not replace it
let revoked = false;
if (site.method !== "strict") {
  await oidc.tokenRevocation(config, newest);
  revoked = await oidc.fetchUserInfo(config, refreshed.access_token, userinfo.sub, options).then(() => false, () => true);
}
const tokenType = tokens.token_type;
console.log(JSON.stringify({ claims: tokens.claims(), userinfo, refreshed: refreshed.claims(), revoked, tokenType }));
process.exit(0);
