// Runs oidc-provider, a certified OpenID Connect provider, with people and groups for tests. Its argument is JSON: the
// redirect URI, and the people by login. It prints its URL as JSON, and ends with its standard input.
"use strict";
const http = require("node:http");
const { pathToFileURL } = require("node:url");

const { redirect, people } = JSON.parse(process.argv[2]);

const main = async () => {
  const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);
  const server = http.createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(url, {
    clients: [{
      client_id: "deviceaccess",
      client_secret: "provider-secret",
      redirect_uris: [redirect],
      response_types: ["code"],
      grant_types: ["authorization_code"],
    }],
    pkce: { required: () => true },
    scopes: ["openid", "email", "profile", "groups"],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
    findAccount: (_, id) => people[id] && { accountId: id, claims: () => ({ sub: id, ...people[id] }) },
    cookies: { keys: ["test"] },
  });
  server.on("request", provider.callback());
  console.log(JSON.stringify({ url }));
};

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
main().catch((error) => { console.error(error); process.exit(1); });
