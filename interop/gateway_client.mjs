#!/usr/bin/env node
// A client on the official SDK, unmodified, of a gateway that is restarted in mid-turn.
//   node gateway_client.mjs 1|2 http|ws FILE
// FILE has the URL of the server that runs now. The client begins a session, sends a prompt, and connects and
// loads the session again whenever its connection has ended. It prints "seen N" for each of the agent's numbers
// that is new, and at the end all that the last connection was sent, as JSON.
import fs from "node:fs";
import WebSocket from "ws";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { buildV1Client, v1InitParams } from "./tspeer/lib/v1checks.mjs";
import { buildV2Client, v2InitParams } from "./tspeer/lib/v2checks.mjs";
import { sleep, withTimeout } from "./tspeer/lib/util.mjs";

const [version, transport, file] = process.argv.slice(2);
process.on("unhandledRejection", () => {});
console.error = () => {};
console.warn = () => {};

const cwd = process.cwd();
let session;
let most = -1;
let all = [];
let asked = 0;

/** One connection. It returns whether the end was seen. */
async function visit() {
  const url = fs.readFileSync(file, "utf8").trim();
  const stream = transport === "ws" ? createWebSocketStream(url.replace(/^http/, "ws"), { WebSocket }) : createHttpStream(url, {});
  const { app, rec, M } = version === "1" ? buildV1Client({}) : buildV2Client({});
  all = [];
  let ended;
  const end = new Promise((res) => { ended = res; });
  rec.onUpdate = ({ update }) => {
    const text = update.content?.text ?? update.content?.[0]?.text;
    if (!/^agent_message/.test(update.sessionUpdate) || text === undefined) return;
    all.push(text);
    const n = Number(text);
    if (n > most) { most = n; process.stdout.write(`seen ${n}\n`); }
    if (text === "end") ended();
  };
  rec.onPerm = () => { asked++; };
  const conn = app.connect(stream);
  const gone = new Promise((_, rej) => conn.signal.addEventListener("abort", () => rej(new Error("gone"))));
  gone.catch(() => {});
  const call = (method, params) => withTimeout(Promise.race([conn.agent.request(method, params), gone]), 20000, "an answer");
  try {
    await call(M.agent.initialize, version === "1" ? v1InitParams(true) : v2InitParams());
    if (!session) {
      session = (await call(M.agent.session.new, { cwd, mcpServers: [] })).sessionId;
      Promise.resolve(conn.agent.request(M.agent.session.prompt, { sessionId: session, prompt: [{ type: "text", text: "go" }] })).catch(() => {});
    } else if (version === "1") {
      await call(M.agent.session.load, { sessionId: session, cwd, mcpServers: [] });
    } else {
      await call(M.agent.session.resume, { sessionId: session, cwd, replayFrom: { type: "start" } });
    }
    await withTimeout(Promise.race([end, gone]), 60000, "the end");
    return true;
  } finally {
    try { conn.close(); } catch { /* it has ended */ }
  }
}

for (let i = 0; i < 2000; i++) {
  try {
    if (await visit()) break;
  } catch { await sleep(20); }
}
process.stdout.write(JSON.stringify({ all, asked }) + "\n");
process.exit(0);
