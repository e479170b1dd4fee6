import { RequestFailed } from "./failure.js";
import type { Json } from "./jwt.js";
import { type AccessToken, failureOf, isPassing, parse, pause, pauseAfter } from "./requests.js";

const SILENCE_S = 45; // there is a heartbeat every 15 seconds
const FIRST_PAUSE_S = 1;
const MAX_PAUSE_S = 30;
const MAX_FRAME = 4 << 20;

export interface Change {
  /** The place in the stream. Store it, and continue after it. Empty for a reset. */
  id: string;
  /** "permissions_changed", "user_banned" …; "reset": changes were missed, so read again what you keep. */
  type: string;
  data: Json;
}

/** Yields the changes after a cursor, until the signal ends it. It survives lost connections, restarts and new tokens. */
export async function* followChanges(
  baseUrl: string,
  token: AccessToken,
  after = "",
  signal = new AbortController().signal,
): AsyncGenerator<Change> {
  const url = `${baseUrl}/api/admin/changes`;
  let pauseS = FIRST_PAUSE_S;
  let refusedTokens = 0;
  while (!signal.aborted) {
    const bearer = await orAborted(tokenUnlessAway(token), signal);
    const stream = new Stream(after ? `${url}?after=${encodeURIComponent(after)}` : url, bearer ?? "", signal);
    let response: Response | null = null;
    try {
      response = bearer === null ? null : await stream.open();
      if (response?.status === 200) {
        refusedTokens = 0;
        for await (const change of stream.changes()) {
          pauseS = FIRST_PAUSE_S;
          if (!change) continue; // a heartbeat
          after = change.id;
          yield change;
        }
      } else if (response?.status === 400 && after) {
        after = "";
        yield { id: "", type: "reset", data: {} };
        continue;
      } else if (response?.status === 401 && refusedTokens === 0) {
        refusedTokens += 1;
        token.forget(bearer!);
        continue;
      } else if (response && !isPassing(response.status)) {
        throw failureOf(url, response.status, parse(await response.text()));
      }
    } finally {
      stream.close();
    }
    await pause(pauseAfter(response, pauseS), signal);
    pauseS = Math.min(2 * pauseS, MAX_PAUSE_S);
  }
}

/** Returns null if the service cannot be reached, as after a lost connection. */
async function tokenUnlessAway(token: AccessToken): Promise<string | null> {
  try {
    return await token.get();
  } catch (error) {
    if (error instanceof RequestFailed && error.reason === "unavailable") return null;
    throw error;
  }
}

/** One connection. Its end, however it comes about, is no error. */
class Stream {
  private readonly connection = new AbortController();
  private body: ReadableStreamDefaultReader<Uint8Array> | null = null;

  constructor(
    private readonly url: string,
    private readonly bearer: string,
    private readonly signal: AbortSignal,
  ) {}

  async open(): Promise<Response | null> {
    const headers = { Authorization: `Bearer ${this.bearer}`, Accept: "text/event-stream" };
    const options = { headers, redirect: "manual", signal: this.connection.signal } as const;
    const response = await unlessSilent(fetch(this.url, options), this.signal);
    if (response?.status !== 200) return response;
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      throw new RequestFailed("not_a_service", `${this.url} has no stream of changes`, 200);
    }
    this.body = response.body!.getReader();
    return response;
  }

  /** Yields null for heartbeats and for members without an event. */
  async *changes(): AsyncGenerator<Change | null> {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const piece = await unlessSilent(this.body!.read(), this.signal);
      if (!piece || piece.done) return; // what is not complete comes again
      const frames = (text + decoder.decode(piece.value, { stream: true })).replaceAll("\r\n", "\n").split("\n\n");
      text = frames.pop()!;
      if (text.length > MAX_FRAME) throw new RequestFailed("not_a_service", "an event is too large");
      for (const frame of frames) yield readFrame(frame);
    }
  }

  close(): void {
    this.connection.abort();
    this.body?.cancel().catch(() => undefined); // Node may have lost the signal of a body that lasts
  }
}

/** Returns null if nothing comes, if the connection is lost, or if the signal is aborted. */
async function unlessSilent<T>(next: Promise<T>, signal: AbortSignal): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), SILENCE_S * 1000)));
  try {
    return await orAborted(Promise.race([next, silence]), signal);
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

/** Returns null if the signal is aborted first. */
async function orAborted<T>(next: Promise<T>, signal: AbortSignal): Promise<T | null> {
  let stop = (): void => undefined;
  const aborted = new Promise<null>((resolve) => {
    stop = () => resolve(null);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([next, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Returns null for heartbeats and for members without an event. */
function readFrame(frame: string): Change | null {
  const fields = new Map(
    frame.split("\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")] as const;
    }),
  );
  const data = parse(fields.get("data") ?? "");
  const id = fields.get("id");
  return data && id ? { id, type: fields.get("event") ?? "", data } : null;
}
