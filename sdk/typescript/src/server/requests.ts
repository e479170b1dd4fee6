import { RequestFailed } from "./failure.js";
import type { Json } from "./jwt.js";

const REQUEST_S = 15;
const TRIES = 3;
const MAX_PAUSE_S = 30;
const MAX_ASKED_S = 60;
const RENEW_BEFORE_S = 30;
const PASSING = new Set([429, 502, 503, 504]);

export interface Credentials {
  clientId: string;
  clientSecret: string;
}

/** Ends early with the signal. */
export function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, seconds * 1000);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
}

/** As long as the service asks for, from 1 to 60 seconds, or the given time. */
export function pauseAfter(response: Response | null, seconds: number): number {
  const text = response?.headers.get("Retry-After") ?? "";
  return /^\d+$/.test(text) ? Math.min(Math.max(Number(text), 1), MAX_ASKED_S) : seconds;
}

export const isPassing = (status: number): boolean => PASSING.has(status);

/** The access token of a service client: fetched once, and again before it ends. */
export class AccessToken {
  private value = "";
  private ends = 0;
  private fetching: Promise<string> | null = null;

  constructor(
    private readonly baseUrl: string,
    private readonly credentials: Credentials,
  ) {}

  async get(): Promise<string> {
    if (this.value && performance.now() / 1000 < this.ends - RENEW_BEFORE_S) return this.value;
    this.fetching ??= this.fetch().finally(() => (this.fetching = null));
    return this.fetching;
  }

  /** Forgets a token that was refused, unless it was replaced meanwhile. */
  forget(refused: string): void {
    if (this.value === refused) this.value = "";
  }

  private async fetch(): Promise<string> {
    const { clientId, clientSecret } = this.credentials;
    const form = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
    const body = await repeated(() => send(`${this.baseUrl}/proxy/oauth/token`, new URLSearchParams(form), {}));
    if (typeof body.access_token !== "string") throw new RequestFailed("not_a_service", "there is no access token");
    this.value = body.access_token;
    this.ends = performance.now() / 1000 + Number(body.expires_in);
    return this.value;
  }
}

/** Sends JSON with the token, and once more with a new token after 401. */
export async function post(url: string, content: Json, token: AccessToken | null): Promise<Json> {
  const text = JSON.stringify(content);
  const ask = (bearer: string): Promise<Json> => {
    const headers = { "Content-Type": "application/json", ...(bearer && { Authorization: `Bearer ${bearer}` }) };
    return repeated(() => send(url, text, headers));
  };
  if (!token) return ask("");
  const bearer = await token.get();
  try {
    return await ask(bearer);
  } catch (error) {
    if (!(error instanceof RequestFailed) || error.status !== 401) throw error;
    token.forget(bearer);
    return ask(await token.get());
  }
}

interface Outcome {
  body: Json | null;
  failure: RequestFailed | null;
  pauseS: number | null; // until it may be tried again
}

/** All requests here only ask, so they may be repeated. */
async function repeated(attempt: () => Promise<Outcome>): Promise<Json> {
  for (let number = 1; ; number += 1) {
    const { body, failure, pauseS } = await attempt();
    if (failure === null) return body!;
    if (pauseS === null || pauseS > MAX_PAUSE_S || number === TRIES) throw failure;
    await pause(pauseS);
  }
}

async function send(url: string, body: string | URLSearchParams, headers: Record<string, string>): Promise<Outcome> {
  let response: Response;
  let text: string;
  try {
    const signal = AbortSignal.timeout(REQUEST_S * 1000);
    response = await fetch(url, { method: "POST", body, headers, redirect: "manual", signal });
    text = await response.text();
  } catch (error) {
    const message = String((error as Error).cause ?? error);
    return { body: null, failure: new RequestFailed("unavailable", message), pauseS: 0.5 };
  }
  const content = parse(text);
  if (response.ok && content) return { body: content, failure: null, pauseS: null };
  const pauseS = isPassing(response.status) ? pauseAfter(response, 0.5) : null;
  return { body: null, failure: failureOf(url, response.status, content), pauseS };
}

export function failureOf(url: string, status: number, content: Json | null): RequestFailed {
  const message = String(content?.error ?? `HTTP ${status}`);
  if (status === 401 || status === 403) return new RequestFailed("refused", message, status);
  if (status === 429 || status >= 500) return new RequestFailed("unavailable", message, status);
  if (content && status >= 400) return new RequestFailed("invalid", message, status);
  return new RequestFailed("not_a_service", `${new URL(url).origin} is not a sign-on service (HTTP ${status})`, status);
}

export function parse(text: string): Json | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : null;
  } catch {
    return null;
  }
}
