import { PlayerRefused } from "./failure.js";
import { type Json, parseJwt, parsePart } from "./jwt.js";
import { KeyCache } from "./key_cache.js";

/** A player whose JWT was verified. */
export interface VerifiedPlayer {
  userId: string;
  /** How the player has signed in: login, otp, token, gsid, guest … */
  auth: string;
  nick: string;
  claims: Json;
}

export interface VerifierOptions {
  /** The public address of the service, if it is reached at another one. */
  issuer?: string;
  /** Unix seconds. */
  now?: () => number;
}

/** Verifies user JWTs without asking the service about each: with its public keys. */
export class Verifier {
  private readonly keys: KeyCache;
  private readonly issuer: string;
  private readonly now: () => number;

  constructor(baseUrl: string, options: VerifierOptions = {}) {
    const url = baseUrl.replace(/\/+$/, "");
    this.keys = new KeyCache(`${url}/proxy/oauth/keys`);
    this.issuer = options.issuer ?? url;
    this.now = options.now ?? (() => Date.now() / 1000);
  }

  /** With a factor, the JWT must belong to that device; undefined does not ask. Throws PlayerRefused. */
  async verify(text: string, options: { factor?: string | undefined } = {}): Promise<VerifiedPlayer> {
    const now = this.now();
    const jwt = parseJwt(text);
    if (jwt.algorithm !== "RS256" && jwt.algorithm !== "ES256" && jwt.algorithm !== "EdDSA") {
      throw new PlayerRefused("signature", "the algorithm is none of the service");
    }
    const key = await this.keys.find(jwt.kid, now);
    // The algorithm is that of the key. A JWT cannot choose another one.
    if (jwt.algorithm !== key.algorithm || !(await key.verify(jwt.signature, jwt.signed))) {
      throw new PlayerRefused("signature", "the signature is wrong");
    }
    const claims = parsePart(jwt.payload);
    const { typ, uid, iss, exp, ends = exp, auth, nick, fac } = claims;
    if (typ !== "user_token" || typeof uid !== "string" || uid === "" || !isTime(exp) || !isTime(ends)) {
      throw new PlayerRefused("malformed", "this is no user JWT");
    }
    if (iss !== this.issuer) throw new PlayerRefused("issuer", `the JWT was issued by ${String(iss)}`);
    if (Math.min(exp, ends) <= now) throw new PlayerRefused("expired", "the JWT has expired");
    const { factor } = options;
    if (factor !== undefined && (!factor || fac !== (await digest(factor)))) {
      throw new PlayerRefused("factor", "the JWT belongs to another device");
    }
    return { userId: uid, auth: String(auth ?? ""), nick: String(nick ?? ""), claims };
  }
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value);

/** The claim `fac` is no secret: it is in the JWT, which the caller has. So a plain comparison is enough. */
async function digest(factor: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(factor)));
  return btoa(String.fromCharCode(...hash)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
