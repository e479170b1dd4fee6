import { SignInFailed } from "./failure.js";

/** Keys of a game, made and used by Web Crypto. */
export interface Signer {
  /** Base64 of the DER of the public key. */
  publicKey: string;
  sign(text: string): Promise<string>;
}

const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
const EC = { name: "ECDSA", namedCurve: "P-256" };

const base64 = (data: ArrayBuffer | Uint8Array): string => btoa(String.fromCharCode(...new Uint8Array(data)));
const bytes = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

/** A key for one session: nobody else can fetch the result, whatever address the game has. */
export async function newSessionKey(): Promise<Signer> {
  const parameters = { ...RSA, modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) };
  const pair = (await crypto.subtle.generateKey(parameters, true, ["sign", "verify"])) as CryptoKeyPair;
  const publicKey = base64(await crypto.subtle.exportKey("spki", pair.publicKey));
  const sign = async (text: string) =>
    base64(await crypto.subtle.sign(RSA.name, pair.privateKey, new TextEncoder().encode(text)));
  return { publicKey, sign };
}

/** The key of a device, with which a guest signs in. Returns it as a text to store. */
export async function newGuestKey(): Promise<string> {
  const pair = (await crypto.subtle.generateKey(EC, true, ["sign", "verify"])) as CryptoKeyPair;
  const [secret, open] = await Promise.all([
    crypto.subtle.exportKey("pkcs8", pair.privateKey),
    crypto.subtle.exportKey("spki", pair.publicKey),
  ]);
  return `${base64(secret)} ${base64(open)}`;
}

/** Throws SignInFailed if the key cannot be read. */
export async function guestSigner(stored: string): Promise<Signer> {
  const [secret = "", publicKey = ""] = stored.split(" ");
  const key = await importSecret(secret).catch(() => null);
  if (!key || !publicKey) throw new SignInFailed("invalid", "the key of the guest cannot be read");
  const sign = async (text: string) => {
    const raw = await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key, new TextEncoder().encode(text));
    return base64(derSignature(new Uint8Array(raw)));
  };
  return { publicKey, sign };
}

async function importSecret(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("pkcs8", bytes(secret), EC, false, ["sign"]);
}

/** Web Crypto gives r and s of equal length; the service expects the DER of both. */
function derSignature(raw: Uint8Array): Uint8Array {
  const integer = (part: Uint8Array): number[] => {
    let start = 0;
    while (start < part.length - 1 && part[start] === 0) start += 1;
    const value = [...part.slice(start)];
    if (value[0]! >= 0x80) value.unshift(0);
    return [0x02, value.length, ...value];
  };
  const half = raw.length / 2;
  const body = [...integer(raw.slice(0, half)), ...integer(raw.slice(half))];
  return Uint8Array.from([0x30, body.length, ...body]);
}

export function newNonce(): string {
  return base64(crypto.getRandomValues(new Uint8Array(24))).replaceAll("+", "-").replaceAll("/", "_");
}
