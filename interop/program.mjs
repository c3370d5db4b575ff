// A client on the official TypeScript SDK and the built-in agent of the program:
// every case prints one line of JSON.
//   node program.mjs 1|2 COMMAND [ARG ...]      in the directory to work in
import { spawn } from "node:child_process";
import fs from "node:fs";
import { Readable, Writable } from "node:stream";
const [v, ...command] = process.argv.slice(2);
const version = Number(v);
const sdk = await import(version === 1 ? "@agentclientprotocol/sdk" : "@agentclientprotocol/sdk/experimental/v2");
const { ndJsonStream } = await import("@agentclientprotocol/sdk");
const M = sdk.methods;
const info = { name: "interop-client", version: "1.0.0" };
const cwd = process.cwd();
const print = (name, value) => console.log(JSON.stringify({ name, ...value }));

/** One process of the agent. Permissions are answered with the first option of a kind. */
async function connect() {
  const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((r) => child.on("exit", (code) => r(code)));
  const app = sdk.client({ name: info.name });
  const c = { said: "", user: "", tools: {}, asked: 0, permit: "allow_once", onText: null, idle: null };
  const show = (content) => [content ?? []].flat().map((b) => b.text ?? "").join("");
  app.onNotification(M.client.session.update, ({ params: { update: u } }) => {
    switch (u.sessionUpdate) {
      case "agent_message_chunk": c.said += u.content.text ?? ""; c.onText?.(c.said); break;
      case "agent_message": c.said += show(u.content); c.onText?.(c.said); break;
      case "user_message_chunk": c.user += u.content.text ?? ""; break;
      case "user_message": c.user += show(u.content); break;
      case "tool_call": case "tool_call_update": if (u.status) c.tools[u.toolCallId] = u.status; break;
      case "state_update": if (u.state === "idle") c.idle?.(u.stopReason); break;
      case "available_commands_update": c.commands = u.availableCommands ?? u.commands; break;
    }
  });
  app.onRequest(M.client.session.requestPermission, ({ params }) => {
    c.asked++;
    return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === c.permit).optionId } };
  });
  const conn = app.connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  c.agent = conn.agent;
  c.init = await c.agent.request(M.agent.initialize, version === 1
    ? { protocolVersion: 1, clientCapabilities: {}, clientInfo: info }
    : { protocolVersion: 2, info, capabilities: {} });
  c.prompt = async (sessionId, text, onText) => {
    c.said = ""; c.tools = {}; c.asked = 0; c.onText = onText;
    const ended = new Promise((r) => (c.idle = r));
    const answer = await c.agent.request(M.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    const stop = version === 1 ? answer.stopReason : await ended;
    return { said: c.said, stop, asked: c.asked, tools: Object.values(c.tools) };
  };
  c.close = async () => { conn.close(); child.stdin.end(); return await exited; };
  return c;
}

const c = await connect();
print("initialize", { version: c.init.protocolVersion });
const session = await c.agent.request(M.agent.session.new, { cwd, mcpServers: [] });
const { sessionId } = session;
print("help", await c.prompt(sessionId, "/help"));
// Version 2 tells the first commands in the answer.
c.commands ??= session.availableCommands;
print("commands", { has: ["read", "edit", "run", "plan"].every((n) => c.commands?.some((x) => x.name === n)) });
fs.writeFileSync("note.txt", "hello from a file\n");
print("read", await c.prompt(sessionId, "/read note.txt"));
for (const permit of ["allow_once", "reject_once"]) {
  c.permit = permit;
  const file = `${permit}.txt`;
  const turn = await c.prompt(sessionId, `/write ${file} hey`);
  print(permit, { ...turn, file: fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : null });
}
let cancelled;
print("cancel", await c.prompt(sessionId, "/demo slow", () => { cancelled ??= c.agent.notify(M.agent.session.cancel, { sessionId }); }));
print("after", await c.prompt(sessionId, "/read note.txt"));
print("exit", { code: await c.close() });

const again = await connect();
const { sessions } = await again.agent.request(M.agent.session.list, { cwd });
print("list", { has: sessions.some((s) => s.sessionId === sessionId) });
// In version 2 a history is told when the session is resumed with replay.
if (version === 1) await again.agent.request(M.agent.session.load, { sessionId, cwd, mcpServers: [] });
const told = version === 1 ? null : new Promise((r) => (again.idle = r));
if (version === 2) await again.agent.request(M.agent.session.resume, { sessionId, cwd, mcpServers: [], replayFrom: { type: "start" } });
await told;
const seen = () => again.user.includes("/read note.txt") && again.said.includes("Lines 1");
for (let i = 0; i < 500 && !seen(); i++) await new Promise((r) => setTimeout(r, 10));
print("history", { has: seen() });
print("again", await again.prompt(sessionId, "/read note.txt"));
print("exit again", { code: await again.close() });
process.exit(0);
