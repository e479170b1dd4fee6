import { PlayerRefused } from "./failure.js";

const MAX_TOKEN = 16 * 1024;
const SHAPE = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const UNSUPPORTED = ["crit", "zip", "b64"]; // members of a header that would change how it is read

export type Json = Record<string, unknown>;

/** A JWT that is not verified yet. */
export interface Jwt {
  kid: string;
  algorithm: unknown;
  signed: Uint8Array<ArrayBuffer>;
  signature: Uint8Array<ArrayBuffer>;
  payload: string;
}

export function parseJwt(text: string): Jwt {
  if (text.length > MAX_TOKEN || !SHAPE.test(text)) throw new PlayerRefused("malformed", "this is no JWT");
  const [head = "", payload = "", signature = ""] = text.split(".");
  const header = parsePart(head);
  const { kid, typ = "JWT", alg } = header;
  if (typeof kid !== "string" || kid === "") throw new PlayerRefused("malformed", "the JWT has no kid");
  if (String(typ).toUpperCase() !== "JWT" || UNSUPPORTED.some((name) => name in header)) {
    throw new PlayerRefused("malformed", "this is another kind of JWT");
  }
  return {
    kid,
    algorithm: alg,
    signed: new TextEncoder().encode(`${head}.${payload}`),
    signature: decode(signature),
    payload,
  };
}

export function parsePart(part: string): Json {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(decode(part));
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value) && !hasTwice(text)) return value as Json;
  } catch {
    // neither base64url nor JSON
  }
  throw new PlayerRefused("malformed", "a part of the JWT is no JSON object");
}

/** Whether an object in this JSON has two members of one name: programs would not agree on which counts. */
function hasTwice(json: string): boolean {
  const open: Set<string>[] = [];
  for (const [token, name] of json.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (name) {
      const names = open.at(-1)!;
      if (names.size === names.add(JSON.parse(name) as string).size) return true;
    }
  }
  return false;
}

function decode(part: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    throw new PlayerRefused("malformed", "a part of the JWT is not base64url");
  }
}
