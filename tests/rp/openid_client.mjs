// A site that uses openid-client, unchanged. Settings come as JSON in the first argument; it prints the address to send
// the browser to, reads the address that the browser came back to, and prints what it got.
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import * as oidc from "openid-client";

const site = JSON.parse(process.argv[2]);

// The strict profile, through the library's own way of adding client authentication.
const sha1Bearer = (secret) => (as, client, body, headers) => {
  const hash = createHash("sha1").update(body.get("redirect_uri") + secret).digest("hex");
  headers.set("authorization", `Bearer ${hash}`);
};
const ways = {
  strict: () => sha1Bearer(site.secret),
  basic: () => oidc.ClientSecretBasic(site.secret),
  post: () => oidc.ClientSecretPost(site.secret),
  none: () => oidc.None(),
};

const config = await oidc.discovery(new URL(site.issuer), site.client_id, undefined, ways[site.way](), {
  execute: [oidc.allowInsecureRequests],
});
const verifier = oidc.randomPKCECodeVerifier();
const state = oidc.randomState();
const nonce = oidc.randomNonce();
const address = oidc.buildAuthorizationUrl(config, {
  redirect_uri: site.redirect_uri,
  scope: "openid offline_access email profile",
  response_mode: "query",
  code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  state,
  nonce,
});
console.log(address.href);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const back = new URL((await lines.next()).value);
const tokens = await oidc.authorizationCodeGrant(config, back, {
  pkceCodeVerifier: verifier,
  expectedState: state,
  expectedNonce: nonce,
  idTokenExpected: true,
});
const told = await oidc.fetchUserInfo(config, tokens.access_token, tokens.claims().sub);
const again = await oidc.refreshTokenGrant(config, tokens.refresh_token, { redirect_uri: site.redirect_uri });
let revoked = false;
if (site.way !== "strict") {
  await oidc.tokenRevocation(config, again.refresh_token);
  revoked = await oidc.fetchUserInfo(config, again.access_token, told.sub).then(() => false, () => true);
}
console.log(JSON.stringify({ claims: tokens.claims(), told, again: again.claims(), revoked }));
process.exit(0);
