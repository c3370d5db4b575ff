#!/usr/bin/env node
// A client on the official SDK, unmodified, that shares a session of a gateway with others.
//   node gateway_asked.mjs 1|2 http|ws URL [SESSION]
// It begins a session, or opens SESSION, and prints "session ID". A line "prompt" on its standard input has it send a
// prompt, and "answer" answer what it is asked. It prints "asked N" and "withdrawn N" for the question with that number,
// and when it has seen the end of the turn all that it was sent, as JSON.
import readline from "node:readline";
import WebSocket from "ws";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { buildV1Client, v1InitParams } from "./tspeer/lib/v1checks.mjs";
import { buildV2Client, v2InitParams } from "./tspeer/lib/v2checks.mjs";

const [version, transport, url, id] = process.argv.slice(2);
const say = (line) => process.stdout.write(line + "\n");
const cwd = process.cwd();
const stream = transport === "ws" ? createWebSocketStream(url.replace(/^http/, "ws"), { WebSocket }) : createHttpStream(url, {});
const { app, rec, M } = version === "1" ? buildV1Client({}) : buildV2Client({});
const all = [];
let answer = () => {};
let n = 0;

rec.onUpdate = ({ update }) => {
  const text = update.content?.text ?? update.content?.[0]?.text;
  if (!/^agent_message/.test(update.sessionUpdate) || text === undefined) return;
  all.push(text);
  if (text === "end") { say(JSON.stringify({ all, asked: n })); process.exit(0); }
};
rec.decide = (params, signal) => new Promise((res) => {
  const number = ++n;
  answer = () => res({ outcome: { outcome: "selected", optionId: params.options[0].optionId } });
  signal.addEventListener("abort", () => { say(`withdrawn ${number}`); res({ outcome: { outcome: "cancelled" } }); }, { once: true });
  say(`asked ${number}`);
});

const conn = app.connect(stream);
await conn.agent.request(M.agent.initialize, version === "1" ? v1InitParams(true) : v2InitParams());
let session = id;
if (!id) session = (await conn.agent.request(M.agent.session.new, { cwd, mcpServers: [] })).sessionId;
else if (version === "1") await conn.agent.request(M.agent.session.load, { sessionId: id, cwd, mcpServers: [] });
else await conn.agent.request(M.agent.session.resume, { sessionId: id, cwd, replayFrom: { type: "start" } });
say(`session ${session}`);
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  if (line === "answer") answer();
  else Promise.resolve(conn.agent.request(M.agent.session.prompt, { sessionId: session, prompt: [{ type: "text", text: "go" }] })).catch(() => {});
}).on("close", () => process.exit(0));
