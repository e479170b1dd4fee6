// The test program of this package: driver.mjs BASE_URL FOLDER. The contract says what it reads and prints.
import { readFile, rm, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { Game, SignInFailed } from "../dist/index.js";

const [baseUrl, folder] = process.argv.slice(2);
const store = {
  get: (name) => readFile(join(folder, name), "utf8").catch(() => null),
  set: (name, value) => (value === null ? rm(join(folder, name), { force: true }) : writeFile(join(folder, name), value)),
};
const print = (event) => console.log(JSON.stringify(event));
let game = null;

const signedIn = (player) =>
  print({ event: "signed_in", user_id: player.userId, nick: player.nick, guest: player.guest, linked: player.linked });

function browserOptions(command) {
  const player = new AbortController();
  return {
    onLink: (url, words) => {
      print({ event: "show_link", url, words });
      if (command.cancel_after === "show_link") setTimeout(() => player.abort(), 500);
    },
    ...(command.socket && { onStage: (stage) => print({ event: "stage", stage }) }),
    sign: command.sign ?? false,
    signal: player.signal,
  };
}

const calls = {
  sign_in: async (command) => signedIn(await game.signIn(browserOptions(command))),
  link: async (command) => signedIn(await game.link(browserOptions(command))),
  resume: async (command) => signedIn(await game.resume({ tries: command.tries ?? 3 })),
  renew: async () => (await game.renew(), print({ event: "renewed" })),
  guest: async () => signedIn(await game.signInAsGuest()),
  ticket: async (command) => signedIn(await game.signInWithTicket(command.provider, command.ticket)),
  check: async (command) => print({ event: "checked", allow: await game.may(command.application_id, command.rule) }),
  sign_out: async () => (await game.signOut(), print({ event: "signed_out" })),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  game ??= new Game(baseUrl, { store, factor: command.factor });
  try {
    await calls[command.do](command);
  } catch (error) {
    if (!(error instanceof SignInFailed)) throw error;
    print({ event: "failed", reason: error.reason, record: error.record, ban: error.ban });
  }
}
