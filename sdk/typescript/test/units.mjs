// What the scenarios of the contract cannot show without long waits: `node --test units.mjs`. No test waits for real.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { BrowserStore, Game } from "../dist/index.js";
import { Service, WebhookRefused, readWebhook } from "../dist/server/index.js";

const real = { fetch, setTimeout, now: Date.now };
afterEach(() => {
  Object.assign(globalThis, { fetch: real.fetch, setTimeout: real.setTimeout });
  Date.now = real.now;
  delete globalThis.localStorage;
});

/** Lets timers fire at once and the clock go on. Returns the pauses, in seconds. */
function fastClock() {
  const pauses = [];
  let elapsed = 0;
  globalThis.setTimeout = (call, ms) => {
    pauses.push(ms / 1000);
    elapsed += ms;
    return real.setTimeout(call, 0);
  };
  Date.now = () => real.now() + elapsed;
  return pauses;
}

const json = (body, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers });

/** Signs in at a service that answers the polls with these responses, and then with the last one for ever. */
async function signIn(...polls) {
  globalThis.fetch = async (url) => {
    if (url.endsWith("/getGsid")) return json({ status: "OK", gsid: "g", match: "brave otter" });
    return (polls.length > 1 ? polls.shift() : polls[0])();
  };
  return new Game("http://sso").signIn({ onLink: () => undefined });
}

const OK = () => json({ status: "OK", user_id: "1", nick: "Ann", token: "t" });

test("a service that answers 503 for a minute is unavailable", async () => {
  const pauses = fastClock();
  await assert.rejects(signIn(() => json({}, 503)), { reason: "unavailable" });
  assert.ok(pauses.length >= 60 && pauses.every((seconds) => seconds === 1), String(pauses));
});

test("pauses that the service asks for are 1 to 60 seconds after an outage, and at once for a poll", async () => {
  const pauses = fastClock();
  const outage = (seconds) => () => json({}, 503, { "Retry-After": seconds });
  const retry = (delay) => () => json({ status: "RETRY", delay });
  await signIn(outage("0"), retry(0), outage("99999999"), retry("soon"), retry(1e9), OK);
  assert.deepEqual(pauses, [1, 0, 60, 1, 60]);
});

test("overlapping sign-ins of a guest use one key, and a later one the stored key", async () => {
  const keys = [];
  globalThis.fetch = async (url, request) => {
    keys.push(JSON.parse(request.body).public_key);
    return json({ status: "OK", user_id: "1", nick: "Guest", guest: true });
  };
  const game = new Game("http://sso");
  await Promise.all([game.signInAsGuest(), game.signInAsGuest()]);
  await game.signInAsGuest();
  assert.deepEqual(keys, [keys[0], keys[0], keys[0]]);
});

test("a guest can sign in after the store has failed", async () => {
  globalThis.fetch = async () => json({ status: "OK", user_id: "1", nick: "Guest", guest: true });
  let isFull = true;
  const set = async () => {
    if (isFull) throw new Error("the store is full");
  };
  const game = new Game("http://sso", { store: { get: async () => null, set } });
  await assert.rejects(game.signInAsGuest(), { message: "the store is full" });
  isFull = false;
  assert.equal((await game.signInAsGuest()).userId, "1");
});

/** A store whose changes take a while. */
function slowStore(values) {
  const set = async (name, value) => {
    await null;
    if (value === null) delete values[name];
    else values[name] = value;
  };
  return { get: async (name) => values[name] ?? null, set };
}

test("a sign-out is not undone by a call that still runs", async () => {
  fastClock();
  const calls = {
    login: (game) => game.renew(),
    ticket: (game) => game.signInWithTicket("steam", "1"),
    guest: (game) => game.signInAsGuest(),
    getGsidResult: (game) => game.signIn({ onLink: () => undefined }),
  };
  for (const [path, call] of Object.entries(calls)) {
    const values = { token: "t1" };
    const game = new Game("http://sso", { store: slowStore(values) });
    const ended = [];
    let tries = 0;
    globalThis.fetch = async (url, request) => {
      const body = JSON.parse(request.body);
      if (url.endsWith("/logout")) ended.push(body.token);
      if (url.endsWith("/getGsid")) return json({ status: "OK", gsid: "g", match: "brave otter" });
      if (!url.endsWith(path)) return json({ status: "OK" });
      if ((tries += 1) === 1 && path === "login") return json({}, 503);
      await game.signOut();
      return json({ status: "OK", user_id: "1", nick: "Ann", token: "t2" });
    };
    await assert.rejects(call(game), { reason: "cancelled" }, path);
    assert.equal(values.token, undefined, path);
    assert.equal(game.player, null, path);
    assert.deepEqual(ended, path === "guest" ? ["t1"] : ["t1", "t2"], path);
  }
});

test("a call that fails because of a sign-out is cancelled", async () => {
  const calls = {
    login: (game) => game.resume({ tries: 1 }),
    ticket: (game) => game.signInWithTicket("steam", "1"),
    guest: (game) => game.signInAsGuest(),
    getGsidResult: (game) => game.signIn({ onLink: () => undefined }),
  };
  for (const [path, call] of Object.entries(calls)) {
    for (const status of [401, 403, 500]) {
      const game = new Game("http://sso", { store: slowStore({ token: "t1" }) });
      globalThis.fetch = async (url) => {
        if (url.endsWith("/getGsid")) return json({ status: "OK", gsid: "g", match: "brave otter" });
        if (!url.endsWith(path)) return json({ status: "OK" });
        await game.signOut();
        return json({ status: "ERROR", error: "the token has ended" }, status);
      };
      await assert.rejects(call(game), { reason: "cancelled" }, `${path} ${status}`);
    }
  }
});

test("a sign-out ends a renewal that waits for the service", async () => {
  const values = { token: "t1" };
  const game = new Game("http://sso", { store: slowStore(values) });
  let tries = 0;
  globalThis.fetch = async (url) => (url.endsWith("/login") ? json({}, (tries += 1) && 503) : json({ status: "OK" }));
  globalThis.setTimeout = (call, ms) => real.setTimeout(() => game.signOut().then(call), ms === 1000 ? 0 : ms);
  await assert.rejects(game.renew(), { reason: "cancelled" });
  assert.equal(tries, 1);
});

test("a sign-out removes a token that is being stored", async () => {
  const values = {};
  const game = new Game("http://sso", { store: slowStore(values) });
  const ended = new Set();
  globalThis.fetch = async (url, request) => {
    if (url.endsWith("/logout")) ended.add(JSON.parse(request.body).token);
    return json({ status: "OK", user_id: "1", nick: "Ann", token: "t2" });
  };
  const { set } = game.store;
  game.store.set = async (name, value) => {
    const signedOut = value === null ? null : game.signOut();
    await set(name, value);
    void signedOut;
  };
  await assert.rejects(game.signInWithTicket("steam", "1"), { reason: "cancelled" });
  await game.signOut();
  assert.equal(values.token, undefined);
  assert.deepEqual([...ended], ["t2"]);
});

test("a sign-out that has begun comes before a call that begins afterwards", async () => {
  const values = { token: "t1" };
  const game = new Game("http://sso", { store: slowStore(values) });
  globalThis.fetch = async () => json({ status: "OK", user_id: "1", nick: "Ann", token: "t2" });
  const signingOut = game.signOut();
  await assert.rejects(game.resume(), { reason: "sign_in_needed" });
  await signingOut;
  assert.equal(values.token, undefined);
});

test("a redirect is no service", async () => {
  const hidden = Object.defineProperty(new Response(""), "status", { value: 0 }); // as a browser shows a redirect
  for (const response of [hidden, new Response("", { status: 302 }), json({ status: "OK", token: "t" }, 307)]) {
    globalThis.fetch = async (_url, options) => {
      if (options.redirect !== "manual") throw new TypeError("fetch failed");
      return response;
    };
    await assert.rejects(new Game("http://sso").signInWithTicket("steam", "1"), { reason: "not_a_service" });
  }
});

test("a guest key that cannot be read is kept", async () => {
  globalThis.fetch = async () => assert.fail("nothing may be sent");
  for (const stored of ["", "?", "AAAA AAAA", "MIGH"]) {
    const values = { guest_key: stored };
    await assert.rejects(new Game("http://sso", { store: slowStore(values) }).signInAsGuest(), { reason: "invalid" });
    assert.equal(values.guest_key, stored);
  }
});

test("a game server pauses at least a second, and changes end with the signal", async () => {
  const stop = new AbortController();
  const service = new Service("http://sso", { clientId: "a", clientSecret: "b" });
  let streams = 0;
  globalThis.fetch = async (url) => {
    if (url.endsWith("/token")) return json({ access_token: "a", expires_in: 3600 });
    streams += 1;
    if (streams === 1) return json({ status: "ERROR" }, 503, { "Retry-After": "0" });
    real.setTimeout(() => stop.abort(), 0);
    return new Response(new ReadableStream(), { headers: { "Content-Type": "text/event-stream" } });
  };
  const pauses = fastClockFor(1);
  for await (const change of service.changes({ signal: stop.signal })) assert.fail(JSON.stringify(change));
  assert.equal(streams, 2);
  assert.ok(pauses.includes(1), String(pauses));
});

/** Lets only timers of this many seconds fire at once: the others are limits. */
function fastClockFor(seconds) {
  const pauses = [];
  globalThis.setTimeout = (call, ms) => {
    pauses.push(ms / 1000);
    return real.setTimeout(call, ms === seconds * 1000 ? 0 : ms);
  };
  return pauses;
}

test("a webhook without a secret, or with a parsed body, is refused", async () => {
  const headers = { "Webhook-Signature": `t=1,v1=${"0".repeat(64)}` };
  for (const [secret, body, reason] of [["", "{}", "signature"], ["s", { id: "1" }, "malformed"], ["s", undefined, "malformed"]]) {
    await assert.rejects(readWebhook(secret, headers, body, 1), (error) => error instanceof WebhookRefused && error.reason === reason);
  }
});

test("a browser without storage keeps values as long as the page", async () => {
  const full = () => {
    throw new Error("QuotaExceededError");
  };
  for (const storage of [undefined, { getItem: () => "old", setItem: full, removeItem: full }]) {
    Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true });
    const store = new BrowserStore();
    await store.set("token", "new");
    assert.equal(await store.get("token"), "new");
    await store.set("token", null);
    assert.equal(await store.get("token"), null);
  }
});
