import { WebhookRefused } from "./failure.js";
import type { Json } from "./jwt.js";
import { parse } from "./requests.js";

const MAX_AGE_S = 300;
const HEADER = "webhook-signature";

export type HeaderFields = Headers | Record<string, string | string[] | undefined>;

export interface Webhook {
  /** A repetition has the same id. */
  id: string;
  type: string;
  data: Json;
}

/** Returns the event of a request whose body, as it was received, is signed with the secret. Throws WebhookRefused. */
export async function readWebhook(
  secret: string,
  headers: HeaderFields,
  body: string | Uint8Array,
  now: number = Date.now() / 1000,
): Promise<Webhook> {
  const { time, signature } = parseHeader(headers);
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new WebhookRefused("malformed", "the body is neither a text nor bytes: was it parsed before?");
  }
  // Anybody can sign with an empty secret, which is a setting that is missing.
  if (!secret) throw new WebhookRefused("signature", "there is no secret");
  const content = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = new Uint8Array([...new TextEncoder().encode(`${time}.`), ...content]);
  const hmac = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), hmac, false, ["verify"]);
  if (!(await crypto.subtle.verify("HMAC", key, bytesOf(signature), signed))) {
    throw new WebhookRefused("signature", "the signature is wrong");
  }
  if (Math.abs(now - Number(time)) > MAX_AGE_S) throw new WebhookRefused("old", "the request is too old");
  const data = parse(new TextDecoder().decode(content));
  if (!data || typeof data.id !== "string") throw new WebhookRefused("malformed", "the body is no event");
  return { id: data.id, type: String(data.type ?? "permissions_changed"), data };
}

function parseHeader(headers: HeaderFields): { time: string; signature: string } {
  const text = headers instanceof Headers ? headers.get(HEADER) : valueOf(headers);
  const fields = new Map(
    String(text ?? "")
      .split(",")
      .map((item) => [item.slice(0, item.indexOf("=")), item.slice(item.indexOf("=") + 1)] as const),
  );
  const [time, signature] = [fields.get("t") ?? "", fields.get("v1")];
  if (!/^\d{1,15}$/.test(time) || signature === undefined) {
    throw new WebhookRefused("malformed", "Webhook-Signature: expected t=<Unix seconds>,v1=<signature>");
  }
  return { time, signature };
}

function valueOf(headers: Record<string, string | string[] | undefined>): string | string[] | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === HEADER)?.[1];
}

const bytesOf = (hex: string): Uint8Array<ArrayBuffer> =>
  /^[0-9a-f]{64}$/.test(hex) ? Uint8Array.from(hex.match(/../g)!, (pair) => parseInt(pair, 16)) : new Uint8Array(32);
