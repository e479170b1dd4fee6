import { SignInFailed } from "./failure.js";

export interface Answer {
  status: number;
  body: Record<string, unknown>;
  headers: Headers;
}

/** The connection was lost, or there was none. The request may have had its effect. */
export class ConnectionLost extends Error {}

const OUTAGES = new Set([429, 502, 503, 504]);
const REQUEST_S = 15;
const MAX_PAUSE_S = 60; // the timer of JavaScript fires at once for very long times

export const isOutage = (answer: Answer): boolean => OUTAGES.has(answer.status);

/** Sends JSON. The text is made once, so that a signature covers exactly what is sent. */
export async function post(
  url: string,
  text: string,
  headers: Record<string, string> = {},
  options: { timeoutS?: number; signal?: AbortSignal } = {},
): Promise<Answer> {
  const limit = AbortSignal.timeout((options.timeoutS ?? REQUEST_S) * 1000);
  const signal = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  let response: Response;
  let content: string;
  try {
    response = await fetch(url, {
      method: "POST",
      body: text,
      headers: { "Content-Type": "application/json", ...headers },
      redirect: "manual", // what redirects is no sign-on service
      credentials: "omit",
      signal,
    });
    content = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw new SignInFailed("cancelled", "the player gave up");
    throw new ConnectionLost(String((error as Error).cause ?? error));
  }
  const { status } = response;
  if (status === 0 || (status >= 300 && status < 400)) throw notAService(url, status); // 0: a browser hides a redirect
  return { status, body: parse(url, status, content), headers: response.headers };
}

function parse(url: string, status: number, content: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(content);
    if (typeof body === "object" && body !== null && "status" in body) return body as Record<string, unknown>;
  } catch {
    // not JSON
  }
  if (OUTAGES.has(status)) return { status: "ERROR", error: `HTTP ${status}` }; // from a proxy before the service
  throw notAService(url, status);
}

function notAService(url: string, status: number): SignInFailed {
  return new SignInFailed("not_a_service", `${new URL(url).origin} is not a sign-on service (HTTP ${status})`);
}

/** How long to wait before the next try: as long as the service asks for, from 1 to 60 seconds. */
export function retryAfterS(answer: Answer): number {
  return Math.max(pauseS(answer.headers.get("Retry-After")), 1);
}

/** A pause that the service asks for, up to 60 seconds; a second if it is no number. */
export function pauseS(asked: unknown): number {
  const seconds = Number(asked ?? NaN);
  return seconds >= 0 ? Math.min(seconds, MAX_PAUSE_S) : 1;
}

export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => reject(new SignInFailed("cancelled", "the player gave up"));
    if (signal?.aborted) return end();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    const stop = () => {
      clearTimeout(timer);
      end();
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}
