// A client on the official TypeScript SDK, to be checked by acp check client: it
// starts the agent it is told, opens a session and sends prompts until the agent
// is gone. It lends its files and permits what it is asked for, in that session.
//   node check_client.mjs 1|2 COMMAND [ARG ...]      without COMMAND: $ACP_AGENT_COMMAND
import { spawn } from "node:child_process";
import fs from "node:fs/promises";
import { Readable, Writable } from "node:stream";
const [v, ...args] = process.argv.slice(2);
const version = Number(v);
const sdk = await import(version === 1 ? "@agentclientprotocol/sdk" : "@agentclientprotocol/sdk/experimental/v2");
const { ndJsonStream } = await import("@agentclientprotocol/sdk");
const M = sdk.methods;
const stdio = ["pipe", "pipe", "inherit"];
const child = args.length ? spawn(args[0], args.slice(1), { stdio }) : spawn(process.env.ACP_AGENT_COMMAND, { stdio, shell: true });
child.on("exit", () => process.exit(0));
child.stdin.on("error", () => {}); // an agent may go when it likes
const app = sdk.client({ name: "check-client" });
let session;
// Another session is none of ours: the SDK does not look.
const inSession = (handler) => ({ params }) => {
  if (params.sessionId !== session) throw sdk.RequestError.invalidParams({ sessionId: params.sessionId }, "unknown session");
  return handler(params);
};
let idle = () => {};
app.onNotification(M.client.session.update, ({ params: { update } }) => {
  if (update.sessionUpdate === "state_update" && update.state === "idle") idle();
});
app.onRequest(M.client.session.requestPermission, inSession(({ options }) => {
  const chosen = options.find((o) => o.kind === "allow_once") ?? options.find((o) => o.kind === "reject_once");
  return { outcome: chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" } };
}));
if (version === 1) {
  app.onRequest(M.client.fs.readTextFile, inSession(async ({ path, line, limit }) => {
    const lines = (await fs.readFile(path, "utf8")).split(/(?<=\n)/);
    const from = Math.max((line ?? 1) - 1, 0);
    return { content: lines.slice(from, limit == null ? undefined : from + limit).join("") };
  }));
  app.onRequest(M.client.fs.writeTextFile, inSession(async ({ path, content }) => {
    await fs.writeFile(path, content);
    return {};
  }));
}
const conn = app.connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const info = { name: "check-client", version: "1.0.0" };
try {
  await conn.agent.request(M.agent.initialize, version === 1
    ? { protocolVersion: 1, clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } }, clientInfo: info }
    : { protocolVersion: 2, info, capabilities: {} });
  ({ sessionId: session } = await conn.agent.request(M.agent.session.new, { cwd: process.cwd(), mcpServers: [] }));
  for (;;) {
    const ended = new Promise((r) => (idle = r));
    await conn.agent.request(M.agent.session.prompt, { sessionId: session, prompt: [{ type: "text", text: "continue" }] });
    if (version === 2) await ended;
  }
} catch (error) {
  console.error(error);
}
conn.close();
child.stdin.end();
