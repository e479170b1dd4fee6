import { PlayerRefused } from "./failure.js";
import type { Json } from "./jwt.js";

const MAX_AGE_S = 300; // a key that was retired is forgotten after this time
const UNKNOWN_KEY_S = 10; // unknown keys fetch the set again at most once in this time
const RETRY_S = 5; // after a fetch that failed
const FETCH_S = 5;

export interface PublicKey {
  algorithm: string;
  verify(signature: Uint8Array<ArrayBuffer>, signed: Uint8Array<ArrayBuffer>): Promise<boolean>;
}

/** The public keys of the service. An old set stays usable while the service is away. */
export class KeyCache {
  private keys: Map<string, PublicKey> | null = null;
  private fetchedAt = 0;
  private retryAt = 0;
  private unknownAt = 0;
  private fetching: Promise<void> | null = null;

  constructor(private readonly url: string) {}

  /** Throws PlayerRefused with unknown_key or unavailable. `now` is in seconds. */
  async find(kid: string, now: number): Promise<PublicKey> {
    if (this.retryAt > now + RETRY_S || this.unknownAt > now + UNKNOWN_KEY_S) this.retryAt = this.unknownAt = 0; // the clock was set back
    const isOld = this.keys === null || Math.abs(now - this.fetchedAt) >= MAX_AGE_S;
    const isFetched = isOld && now >= this.retryAt;
    if (isFetched) await this.fetch(now);
    else if (this.keys === null) await this.fetching;
    if (this.keys === null) throw new PlayerRefused("unavailable", "the keys of the service cannot be fetched");
    if (!this.keys.has(kid) && !isFetched) {
      if (now >= this.unknownAt) {
        this.unknownAt = now + UNKNOWN_KEY_S;
        await this.fetch(now);
      } else await this.fetching;
    }
    const key = this.keys.get(kid);
    if (!key) throw new PlayerRefused("unknown_key", "the service has no such key");
    return key;
  }

  /** Verifications that need no new set go on with the old one meanwhile. */
  private fetch(now: number): Promise<void> {
    this.retryAt = now + RETRY_S;
    this.fetching ??= this.load(now).finally(() => (this.fetching = null));
    return this.fetching;
  }

  private async load(now: number): Promise<void> {
    try {
      const response = await fetch(this.url, { redirect: "error", signal: AbortSignal.timeout(FETCH_S * 1000) });
      const { keys } = (await response.json()) as { keys: Json[] };
      if (response.status !== 200) return;
      const imported = await Promise.all(keys.map(importKey));
      this.keys = new Map(imported.filter((entry) => entry !== null));
      [this.fetchedAt, this.retryAt] = [now, 0];
    } catch {
      // the old set stays
    }
  }
}

const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const EC = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** Returns the kid and the key; null for kinds of keys that this version does not know. */
async function importKey(jwk: Json): Promise<[string, PublicKey] | null> {
  const { kid, kty, crv, n, e, x, y } = jwk as Record<string, string>;
  const kinds = {
    RSA: ["RS256", RSA, { kty, n, e }],
    EC: ["ES256", EC, { kty, crv, x, y }],
    OKP: ["EdDSA", { name: "Ed25519" }, { kty, crv, x }],
  } as const;
  const kind = kinds[kty as keyof typeof kinds];
  if (!kid || !kind) return null;
  const [algorithm, parameters, members] = kind;
  try {
    const key = await crypto.subtle.importKey("jwk", members as JsonWebKey, parameters, false, ["verify"]);
    return [kid, { algorithm, verify: (signature, signed) => crypto.subtle.verify(parameters, key, signature, signed) }];
  } catch {
    return null;
  }
}
