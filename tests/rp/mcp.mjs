// A resource server and a client that use the unmodified SDK of the Model Context Protocol. The first argument has the
// settings as JSON. It prints the address of the resource server, waits for a line, connects from that address alone,
// prints the authorization URL, reads the redirect URL, connects again, and prints the result of a tool as JSON.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const settings = JSON.parse(process.argv[2]);
const METADATA = "/.well-known/oauth-protected-resource/mcp";
let address;

async function introspect(authorization) {
  const token = (authorization ?? "").replace("Bearer ", "");
  const basic = Buffer.from(`${settings.resource_client}:${settings.resource_secret}`).toString("base64");
  const answer = await fetch(`${settings.issuer}/proxy/oauth/introspect`, {
    method: "POST",
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ token }),
  });
  return token ? await answer.json() : { active: false };
}

const resourceServer = createServer(async (request, response) => {
  if (request.url === METADATA) {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ resource: `${address}/mcp`, authorization_servers: [settings.issuer] }));
    return;
  }
  const caller = await introspect(request.headers.authorization);
  if (!caller.active || !caller.aud.includes(`${address}/mcp`)) {
    response.setHeader("www-authenticate", `Bearer resource_metadata="${address}${METADATA}"`);
    response.statusCode = 401;
    response.end();
    return;
  }
  const server = new McpServer({ name: "stand-in", version: "1" });
  server.registerTool("whoami", { description: "Says who calls." }, () => ({
    content: [{ type: "text", text: JSON.stringify({ sub: caller.sub, client_id: caller.client_id }) }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response);
});
await new Promise((done) => resourceServer.listen(0, "127.0.0.1", done));
address = `http://127.0.0.1:${resourceServer.address().port}`;
console.log(`${address}/mcp`);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
await lines.next(); // the resource server is registered now

const saved = {};
const provider = {
  redirectUrl: "http://127.0.0.1:9/callback",
  clientMetadataUrl: settings.metadata_url,
  clientMetadata: {
    client_name: "Agent of the SDK",
    redirect_uris: ["http://127.0.0.1:9/callback"],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  clientInformation: () => saved.client,
  saveClientInformation: (client) => { saved.client = client; },
  tokens: () => saved.tokens,
  saveTokens: (tokens) => { saved.tokens = tokens; },
  codeVerifier: () => saved.verifier,
  saveCodeVerifier: (verifier) => { saved.verifier = verifier; },
  redirectToAuthorization: (url) => console.log(url.href),
};
const connect = async (transport) => {
  const client = new Client({ name: "agent", version: "1" });
  await client.connect(transport);
  return client;
};
const first = new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { authProvider: provider });
await connect(first).then(
  () => { throw new Error("connected without a token"); },
  (error) => { if (!(error instanceof UnauthorizedError)) throw error; },
);
const redirected = new URL((await lines.next()).value);
await first.finishAuth(redirected.searchParams.get("code"));
const client = await connect(new StreamableHTTPClientTransport(new URL(`${address}/mcp`), { authProvider: provider }));
const result = await client.callTool({ name: "whoami" });
console.log(JSON.stringify({ caller: JSON.parse(result.content[0].text), client_id: saved.client.client_id }));
process.exit(0);
