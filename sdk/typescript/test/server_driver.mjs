// The test program of the server side: server_driver.mjs BASE_URL FOLDER. The contract says what it reads and prints.
import { createInterface } from "node:readline";
import { PlayerRefused, RequestFailed, Service, Verifier, WebhookRefused, readWebhook } from "../dist/server/index.js";

const [baseUrl] = process.argv.slice(2);
const print = (event) => console.log(JSON.stringify(event));
let time = null;
let verifier = null;
let service = new Service(baseUrl);

const calls = {
  credentials: (command) => {
    service = new Service(baseUrl, { clientId: command.client_id, clientSecret: command.client_secret });
  },
  verify: async (command) => {
    time = command.now ?? null;
    verifier ??= new Verifier(baseUrl, {
      ...(command.issuer && { issuer: command.issuer }),
      now: () => time ?? Date.now() / 1000,
    });
    const player = await verifier.verify(command.jwt, { factor: command.factor });
    print({ event: "verified", user_id: player.userId, auth: player.auth });
  },
  check: async (command) => {
    const questions = command.questions.map((item) => ({
      userId: item.user_id,
      applicationId: item.application_id,
      rule: item.rule,
    }));
    print({ event: "checked", answers: await service.check(questions) });
  },
  follow: async (command) => {
    let left = command.count;
    for await (const change of service.changes({ after: command.after })) {
      if (change.type === "reset") print({ event: "reset" });
      else print({ event: "change", id: change.id, type: change.type });
      if (change.type !== "reset" && (left -= 1) === 0) break;
    }
  },
  webhook: async (command) => {
    const event = await readWebhook(command.secret, command.headers, command.body, command.now);
    print({ event: "webhook", id: event.id, type: event.type });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  try {
    await calls[command.do](command);
  } catch (error) {
    if (error instanceof RequestFailed) print({ event: "failed", reason: error.reason });
    else if (error instanceof PlayerRefused || error instanceof WebhookRefused) print({ event: "refused", reason: error.reason });
    else throw error;
  }
}
