// fastify.mjs BASE_URL: a game server with Fastify. Prints its port.
import Fastify from "fastify";
import { Service, Verifier, WebhookRefused, playerHook, readWebhook, ruleHook } from "@sso/game/server";

const [baseUrl] = process.argv.slice(2);
const { SSO_CLIENT_ID = "", SSO_CLIENT_SECRET = "", WEBHOOK_SECRET = "", REQUIRE_FACTOR = "" } = process.env;
const verifier = new Verifier(baseUrl);
const service = new Service(baseUrl, { clientId: SSO_CLIENT_ID, clientSecret: SSO_CLIENT_SECRET });

const app = Fastify();
app.register(async (webhooks) => {
  webhooks.removeAllContentTypeParsers();
  webhooks.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  webhooks.post("/webhook", async (request, reply) => {
    try {
      console.log(JSON.stringify(await readWebhook(WEBHOOK_SECRET, request.headers, request.body)));
      return reply.code(204).send();
    } catch (error) {
      if (!(error instanceof WebhookRefused)) throw error;
      return reply.code(403).send();
    }
  });
});
app.register(async (game) => {
  game.addHook("preHandler", playerHook(verifier, { requireFactor: REQUIRE_FACTOR !== "" }));
  game.get("/me", async (request) => ({ user_id: request.player.userId }));
  game.post("/kick", { preHandler: ruleHook(service, 10, "chat.kick") }, async () => ({ kicked: true }));
  game.post("/say", { preHandler: ruleHook(service, 10, "chat.write") }, async () => ({ said: true }));
});
await app.listen({ port: 0, host: "127.0.0.1" });
console.log(app.server.address().port);
process.stdin.resume().on("end", () => process.exit());
