import { SignInFailed, failureOf } from "./failure.js";
import { type Answer, post, sleep } from "./http.js";
import { guestSigner, newGuestKey, newNonce } from "./keys.js";
import { Session, firstAnswer } from "./session.js";
import { Stages } from "./stages.js";
import { type Store, MemoryStore } from "./store.js";

export interface Player {
  userId: string;
  nick: string;
  guest: boolean;
  /** For the game's own servers, which verify it. Empty without a factor. */
  jwt: string;
  /** After `link`: "upgraded", or "merged" into an account that existed. */
  linked: string;
}

export interface SignInOptions {
  /** Called with the link to open, or to show as a QR code, and the words to show next to it. */
  onLink: (url: string, words: string) => void;
  /** Called with each stage of the page; it opens a WebSocket. */
  onStage?: (stage: string) => void;
  /** Aborted when the player gives up. */
  signal?: AbortSignal;
  /** Signs the requests with a new key, for games whose address is shared. */
  sign?: boolean;
}

export interface GameOptions {
  store?: Store;
  /** A name of this device, of the game's choice. It belongs to each user JWT. */
  factor?: string;
  applicationId?: number;
}

const TOKEN = "token";
const GUEST_KEY = "guest_key";
const SIGN_OUT_S = 3; // the player does not wait for a service that is away

/** A game: signs its player in and keeps the player signed in. */
export class Game {
  readonly baseUrl: string;
  player: Player | null = null;
  private readonly store: Store;
  private readonly fields: Record<string, unknown>;
  private pendingGuestKey: Promise<string> | null = null;
  private signOuts = 0; // a call that began before a sign-out does not sign the player in again
  private lastUse: Promise<unknown> = Promise.resolve(); // of the stored token

  constructor(baseUrl: string, options: GameOptions = {}) {
    this.baseUrl = baseUrl.replace(/\/+$/, "");
    this.store = options.store ?? new MemoryStore();
    this.fields = {
      ...(options.factor && { factor: options.factor }),
      ...(options.applicationId && { app_id: options.applicationId }),
    };
  }

  /** Signs the player in with a browser. */
  async signIn(options: SignInOptions): Promise<Player> {
    return this.untilSignOut((signOuts) => this.withBrowser(options, {}, {}, signOuts));
  }

  /** Signs a guest in with a browser. The player keeps what the guest has. */
  async link(options: SignInOptions): Promise<Player> {
    if (!this.player?.guest) throw new SignInFailed("sign_in_needed", "sign the guest in first");
    const headers = { Authorization: `Bearer ${this.player.jwt}`, Factor: String(this.fields.factor ?? "") };
    return this.untilSignOut((signOuts) => this.withBrowser(options, { link: "1" }, headers, signOuts));
  }

  /** Signs the player in with the stored token, without a browser. */
  async resume(options: { tries?: number } = {}): Promise<Player> {
    return this.untilSignOut((signOuts) => this.withStoredToken(options.tries ?? 3, signOuts));
  }

  /** Gets new tokens before the present ones end. */
  async renew(): Promise<Player> {
    return this.resume();
  }

  /** Signs a guest in with the key of this device, which is made at the first call. */
  async signInAsGuest(): Promise<Player> {
    return this.untilSignOut((signOuts) => this.asGuest(signOuts));
  }

  /** Signs the player in with the ticket of a store. */
  async signInWithTicket(provider: string, ticket: unknown): Promise<Player> {
    return this.untilSignOut(async (signOuts) =>
      this.accept(await this.ask("/proxy/api/ticket", { provider, ticket }), signOuts),
    );
  }

  /** Asks whether the player may do something. */
  async may(applicationId: number, rule: string): Promise<boolean> {
    if (!this.player) throw new SignInFailed("sign_in_needed", "no player is signed in");
    const body = JSON.stringify({ application_id: applicationId, data: { questions: [{ rule }] } });
    const headers = { Authorization: `Bearer ${this.player.jwt}`, Factor: String(this.fields.factor ?? "") };
    const answer = await firstAnswer(`${this.baseUrl}/api/permissions/check`, body, headers);
    if (answer.body.status !== "OK") throw failureOf(answer.status, answer.body);
    const [first] = answer.body.data as { allow: boolean }[];
    return first?.allow === true;
  }

  /** Forgets the player and ends the sign-in. The key of a guest stays: it is the only way back to its progress. Calls
   * that run fail with "cancelled" instead of signing the player in again. */
  async signOut(): Promise<void> {
    this.signOuts += 1;
    this.player = null;
    const token = await this.alone(async () => {
      const stored = await this.store.get(TOKEN);
      await this.store.set(TOKEN, null);
      return stored;
    });
    if (token !== null) await this.logOut(token);
  }

  /** Runs a call that signs the player in. After a sign-out it fails as cancelled, whatever the service has answered. */
  private async untilSignOut(call: (signOuts: number) => Promise<Player>): Promise<Player> {
    const signOuts = this.signOuts;
    try {
      return await call(signOuts);
    } catch (error) {
      throw error instanceof SignInFailed && signOuts !== this.signOuts ? signedOut() : error;
    }
  }

  private async withBrowser(
    options: SignInOptions,
    fields: Record<string, string>,
    headers: Record<string, string>,
    signOuts: number,
  ): Promise<Player> {
    const signal = options.signal ?? new AbortController().signal;
    const sign = options.sign ?? false;
    const session = await Session.register(this.baseUrl, { ...this.fields, ...fields }, headers, { sign, signal });
    const stages = options.onStage ? new Stages(session, options.onStage) : null;
    try {
      options.onLink(session.link, session.words);
      const player = await this.keep(await session.result(signal), signOuts);
      await session.close("Success");
      return player;
    } catch (error) {
      if (error instanceof SignInFailed && error.reason === "cancelled") await session.close("Error");
      throw error;
    } finally {
      stages?.close();
    }
  }

  private async withStoredToken(tries: number, signOuts: number): Promise<Player> {
    const token = await this.alone(() => this.store.get(TOKEN));
    if (token === null) throw new SignInFailed("sign_in_needed", "nothing is stored");
    for (let left = tries; ; left -= 1) {
      try {
        const answer = await this.ask("/proxy/api/login", { token });
        if (answer.status !== 401) return await this.accept(answer, signOuts); // after 403 the token has not ended
        await this.storeToken(null, signOuts);
        throw new SignInFailed("sign_in_needed", failureOf(answer.status, answer.body).message);
      } catch (error) {
        const isAway = error instanceof SignInFailed && error.reason === "unavailable";
        if (!isAway || left <= 1) throw error; // the token stays for the next start
      }
      await sleep(1);
      if (signOuts !== this.signOuts) throw signedOut();
    }
  }

  private async asGuest(signOuts: number): Promise<Player> {
    // Overlapping calls share one key.
    const key = (this.pendingGuestKey ??= this.guestKey().finally(() => (this.pendingGuestKey = null)));
    const signer = await guestSigner(await key);
    const proof = { public_key: signer.publicKey, ts: Math.floor(Date.now() / 1000), nonce: newNonce() };
    const body = JSON.stringify({ ...this.fields, ...proof });
    const headers = { "Request-Sign": await signer.sign(body) };
    const answer = await firstAnswer(`${this.baseUrl}/proxy/api/guest`, body, headers);
    if (answer.status === 404) throw new SignInFailed("no_guests", "the service has no guests");
    if (answer.body.status !== "OK") throw failureOf(answer.status, answer.body);
    if (signOuts !== this.signOuts) throw signedOut();
    return (this.player = playerOf(answer.body)); // a guest comes back by its key, so no token is stored
  }

  private async guestKey(): Promise<string> {
    const stored = await this.store.get(GUEST_KEY);
    if (stored !== null) return stored;
    const key = await newGuestKey();
    await this.store.set(GUEST_KEY, key);
    return key;
  }

  private ask(path: string, fields: Record<string, unknown>): Promise<Answer> {
    return firstAnswer(this.baseUrl + path, JSON.stringify({ ...this.fields, ...fields }), {});
  }

  private async accept(answer: Answer, signOuts: number): Promise<Player> {
    if (answer.body.status !== "OK") throw failureOf(answer.status, answer.body);
    return this.keep(answer.body, signOuts);
  }

  /** The result is returned only once, so its token is stored before anything else. */
  private async keep(body: Record<string, unknown>, signOuts: number): Promise<Player> {
    const token = String(body.token);
    await this.storeToken(token, signOuts);
    if (signOuts === this.signOuts) return (this.player = playerOf(body));
    await this.logOut(token);
    throw signedOut();
  }

  /** Changes the stored token, unless the player has signed out since the call began. */
  private storeToken(token: string | null, signOuts: number): Promise<void> {
    return this.alone(async () => {
      if (signOuts === this.signOuts) await this.store.set(TOKEN, token);
    });
  }

  /** Uses of the stored token follow one another: a sign-out removes what was being stored when it began. */
  private alone<T>(use: () => Promise<T>): Promise<T> {
    const used = this.lastUse.then(use);
    this.lastUse = used.catch(() => undefined);
    return used;
  }

  private async logOut(token: string): Promise<void> {
    const options = { timeoutS: SIGN_OUT_S };
    await post(`${this.baseUrl}/proxy/api/logout`, JSON.stringify({ token }), {}, options).catch(() => undefined);
  }
}

const signedOut = (): SignInFailed => new SignInFailed("cancelled", "the player has signed out meanwhile");

function playerOf(body: Record<string, unknown>): Player {
  return {
    userId: String(body.user_id),
    nick: String(body.nick),
    guest: body.guest === true,
    jwt: String(body.jwt ?? ""),
    linked: String(body.linked ?? ""),
  };
}
