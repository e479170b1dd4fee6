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
