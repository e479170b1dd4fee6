// express.mjs BASE_URL: a game server with Express. Prints its port.
import express from "express";
import { Service, Verifier, WebhookRefused, readWebhook, requirePlayer, requireRule } from "@sso/game/server";

const [baseUrl] = process.argv.slice(2);
const { SSO_CLIENT_ID = "", SSO_CLIENT_SECRET = "", WEBHOOK_SECRET = "", REQUIRE_FACTOR = "" } = process.env;
const verifier = new Verifier(baseUrl);
const service = new Service(baseUrl, { clientId: SSO_CLIENT_ID, clientSecret: SSO_CLIENT_SECRET });

const app = express();
// A webhook is verified with its body as it was received, so no other parser may come first.
app.post("/webhook", express.raw({ type: "*/*", limit: "1mb" }), async (request, response) => {
  try {
    console.log(JSON.stringify(await readWebhook(WEBHOOK_SECRET, request.headers, request.body)));
    response.sendStatus(204);
  } catch (error) {
    if (!(error instanceof WebhookRefused)) throw error;
    response.sendStatus(403);
  }
});
app.use(requirePlayer(verifier, { requireFactor: REQUIRE_FACTOR !== "" }));
app.get("/me", (request, response) => response.json({ user_id: request.player.userId }));
app.post("/kick", requireRule(service, 10, "chat.kick"), (_request, response) => response.json({ kicked: true }));
app.post("/say", requireRule(service, 10, "chat.write"), (_request, response) => response.json({ said: true }));
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
