import { SignInFailed, failureOf } from "./failure.js";
import { type Answer, ConnectionLost, isOutage, pauseS, post, retryAfterS, sleep } from "./http.js";
import { type Signer, newSessionKey } from "./keys.js";

const PATH = "/proxy/api/gameSession";
const POLL_S = 45; // longer than the 30 seconds for which the service holds a poll
const MAX_OUTAGE_S = 60; // a session outlives a restart of the service

/** A session of the sign-in: a link for the browser, two words, and one open request for the result. */
export class Session {
  private constructor(
    readonly baseUrl: string,
    readonly gsid: string,
    /** Two words that the game shows next to the link; the page shows the same. */
    readonly words: string,
    /** Proves that a request comes from this game, as the query of an address. */
    readonly proof: string,
    private readonly key: Signer | null,
  ) {}

  static async register(
    baseUrl: string,
    fields: Record<string, unknown>,
    headers: Record<string, string>,
    options: { sign: boolean; signal: AbortSignal },
  ): Promise<Session> {
    const key = options.sign ? await newSessionKey() : null;
    const body = JSON.stringify({ ...fields, ...(key && { public_key: key.publicKey }) });
    const answer = await firstAnswer(`${baseUrl}${PATH}/getGsid`, body, headers, options.signal);
    if (answer.body.status !== "OK") throw failureOf(answer.status, answer.body);
    const location = answer.headers.get("Location");
    const proof = location ? new URL(location, baseUrl).search : "";
    return new Session(baseUrl, String(answer.body.gsid), String(answer.body.match), proof, key);
  }

  get link(): string {
    return `${this.baseUrl}/?gsid=${this.gsid}`;
  }

  /** Polls until the player has signed in. */
  async result(signal: AbortSignal): Promise<Record<string, unknown>> {
    let outageSince: number | null = null;
    for (;;) {
      const answer = await this.poll(signal);
      if (answer instanceof ConnectionLost || isOutage(answer)) {
        outageSince ??= Date.now();
        if (Date.now() - outageSince > MAX_OUTAGE_S * 1000) throw new SignInFailed("unavailable", "the service is away");
        await sleep(answer instanceof ConnectionLost ? 1 : retryAfterS(answer), signal);
        continue;
      }
      outageSince = null;
      if (answer.body.status === "OK") return answer.body;
      if (answer.body.status === "RETRY") await sleep(pauseS(answer.body.delay), signal);
      else if (answer.body.status !== "CANCELLED") throw failureOf(answer.status, answer.body);
    }
  }

  private async poll(signal: AbortSignal): Promise<Answer | ConnectionLost> {
    try {
      return await this.send("getGsidResult", {}, { timeoutS: POLL_S, signal });
    } catch (error) {
      if (error instanceof ConnectionLost) return error;
      throw error;
    }
  }

  /** Tells the service how the sign-in ended. "Error" makes the link unusable. Nothing depends on the answer. */
  async close(status: "Success" | "Error"): Promise<void> {
    await this.send("closeGsid", { status }, { timeoutS: 3 }).catch(() => undefined);
  }

  private async send(
    name: string,
    fields: Record<string, string>,
    options: { timeoutS: number; signal?: AbortSignal },
  ): Promise<Answer> {
    const body = JSON.stringify({ gsid: this.gsid, ...fields });
    const url = `${this.baseUrl}${PATH}/${name}`;
    if (this.key) return post(url, body, { "Request-Sign": await this.key.sign(body) }, options);
    return post(url + this.proof, body, {}, options);
  }
}

/** Sends the first request to an address, where no service may be. */
export async function firstAnswer(
  url: string,
  body: string,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Answer> {
  try {
    return await post(url, body, headers, signal ? { signal } : {});
  } catch (error) {
    if (error instanceof ConnectionLost) throw new SignInFailed("unavailable", error.message);
    throw error;
  }
}
