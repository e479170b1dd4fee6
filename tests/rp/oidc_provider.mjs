// An OpenID provider (oidc-provider, npm) that knows one client. Prints its issuer when it is ready.
import http from "node:http";
import { Provider } from "oidc-provider";

const client = JSON.parse(process.argv[2]);
const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [client],
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"] },
    findAccount: async (_, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, name: id, email: `${id}@elsewhere.example`, email_verified: true }),
    }),
    cookies: { keys: ["only for tests"] },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
