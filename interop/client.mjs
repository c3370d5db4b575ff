// A client on the official TypeScript SDK: one turn with the agent that the
// command after -- starts; prints what it says, then the stop reason.
//   node client.mjs 1|2 TEXT -- COMMAND [ARG ...]
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
const [v, text, , ...command] = process.argv.slice(2);
const version = Number(v);
const sdk = await import(version === 1 ? "@agentclientprotocol/sdk" : "@agentclientprotocol/sdk/experimental/v2");
const { ndJsonStream } = await import("@agentclientprotocol/sdk");
const M = sdk.methods;
const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((r) => child.on("exit", (code) => r(code)));
const app = sdk.client({ name: "interop-client" });
let said = "", idle;
const ended = new Promise((r) => (idle = r));
app.onNotification(M.client.session.update, ({ params: { update: u } }) => {
  if (u.sessionUpdate === "agent_message_chunk") said += u.content.text;
  if (u.sessionUpdate === "state_update" && u.state === "idle") idle(u.stopReason);
});
const conn = app.connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
const info = { name: "interop-client", version: "1.0.0" };
const agent = conn.agent;
await agent.request(M.agent.initialize, version === 1
  ? { protocolVersion: 1, clientCapabilities: {}, clientInfo: info }
  : { protocolVersion: 2, info, capabilities: {} });
const { sessionId } = await agent.request(M.agent.session.new, { cwd: process.cwd(), mcpServers: [] });
const answer = await agent.request(M.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
const reason = version === 1 ? answer.stopReason : await ended;
console.log(JSON.stringify({ said, reason }));
conn.close();
child.stdin.end();
console.log(JSON.stringify({ exit: await exited }));
process.exit(0);
