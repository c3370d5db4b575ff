// The client side of the TypeScript SDK: makes the measurements that are asked
// for on standard input, as the Go client process does (client.go, measure.go).
import * as acp from "@agentclientprotocol/sdk";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath } from "node:url";
import { buildAgent } from "./agent.mjs";
import { fileText, nodeStream, processStats, promptText, sessionId } from "./shared.mjs";

const rec = { updates: 0, bytes: 0, files: new Map() };

function buildClient() {
  const app = acp.client({ name: "bench-client" });
  app.onNotification(acp.methods.client.session.update, ({ params }) => {
    const u = params.update;
    const text = u.sessionUpdate === "tool_call_update" ? u.content[0].newText : u.content.text;
    if (text[0] === "{") { rec.stats = JSON.parse(text); return; }
    rec.updates++;
    rec.bytes += text.length;
  });
  app.onRequest(acp.methods.client.fs.readTextFile, ({ params }) => ({ content: rec.files.get(params.path) }));
  return app;
}

const prompter = (conn) => (i, text) =>
  conn.agent.request(acp.methods.agent.session.prompt, { sessionId: sessionId(i), prompt: [{ type: "text", text }] });

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
const sort = (v) => v.sort((a, b) => a - b);

/** Adds what a unit of the work cost on either side. */
async function costed(prompt, work, o) {
  const agentStats = async () => { await prompt(0, "!stats"); return rec.stats; };
  const agent0 = await agentStats(), client0 = processStats();
  const { units, ...metrics } = await work(prompt, o);
  const client1 = processStats(), agent1 = await agentStats();
  const client_cpu = (client1.cpu - client0.cpu) / units, agent_cpu = (agent1.cpu - agent0.cpu) / units;
  return { ...metrics, client_cpu, agent_cpu, both_cpu: client_cpu + agent_cpu, ns: (client_cpu + agent_cpu) * 1000 };
}

async function trips(prompt, o) {
  const times = [];
  const start = performance.now(), end = start + o.millis;
  await Promise.all(Array.from({ length: o.callers }, async (_, i) => {
    for (let t = performance.now(); t < end;) {
      await prompt(i, promptText);
      const now = performance.now();
      times.push(now - t);
      t = now;
    }
  }));
  const elapsed = performance.now() - start;
  sort(times);
  return { units: times.length, p50: quantile(times, 0.5) * 1000, p99: quantile(times, 0.99) * 1000, rate: times.length / elapsed * 1000 };
}

async function updates(prompt, o) {
  const first = rec.updates;
  let n = 0, elapsed = 0;
  const start = performance.now();
  while (elapsed < o.millis) {
    await prompt(0, `!${o.verb} ${o.window} ${o.size ?? 0}`);
    n += o.window;
    if (rec.updates - first !== n) throw new Error(`${rec.updates - first} updates arrived before the response, want ${n}`);
    elapsed = performance.now() - start;
  }
  return { units: n, rate: n / elapsed * 1000 };
}

async function read(prompt, o) {
  const file = `/home/user/${o.file}-${o.size}.txt`;
  if (!rec.files.has(file)) rec.files.set(file, fileText(o.file, o.size));
  const times = [];
  let elapsed = 0;
  while (elapsed < o.millis) {
    const start = performance.now();
    await prompt(0, `!read ${o.size} ${o.file}`);
    times.push(performance.now() - start);
    elapsed += times.at(-1);
  }
  const ms = quantile(sort(times), 0.5);
  return { units: times.length * o.size, ms, rate: o.size / 1e6 / (ms / 1000) };
}

/** Both sides in this process, over Unix sockets: Node cannot make pipes. */
async function idle(o) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "acpbench-"));
  const file = path.join(dir, "s");
  const conns = [], sockets = [];
  const files = () => { try { return fs.readdirSync("/proc/self/fd").length - 1; } catch { return 0; } };
  const rest = () => { for (let i = 0; i < 3; i++) globalThis.gc(); return { ...process.memoryUsage(), files: files() }; };
  const server = net.createServer((s) => { sockets.push(s); conns.push(buildAgent().connect(nodeStream(s, s))); });
  await new Promise((res) => server.listen(file, res));
  const before = rest();
  for (let i = 0; i < o.count; i++) {
    const s = net.connect(file);
    await new Promise((res) => s.once("connect", res));
    sockets.push(s);
    const conn = buildClient().connect(nodeStream(s, s));
    conns.push(conn);
    await prompter(conn)(0, promptText);
  }
  await new Promise((res) => setTimeout(res, 100));
  const after = rest();
  for (const s of sockets) { s.on("error", () => {}); s.destroy(); }
  server.close();
  fs.rmSync(dir, { recursive: true });
  const sides = 2 * o.count;
  return { heap: (after.heapUsed - before.heapUsed) / sides / 1000, rss: (after.rss - before.rss) / sides / 1000, files: (after.files - before.files) / sides };
}

const mode = process.argv[2];
const overNet = mode === "http" || mode === "ws";

/** Starts the agent as a server, in a process of its own. */
async function netAgent() {
  const child = spawn(process.execPath, ["--expose-gc", fileURLToPath(new URL("agent.mjs", import.meta.url)), mode], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = readline.createInterface({ input: child.stdout });
  const [url] = await once(lines, "line");
  return { child, url };
}

/** Connects to a server and opens sessions as they are needed. */
async function netPrompter(url) {
  const stream = mode === "ws"
    ? (await import("@agentclientprotocol/sdk/experimental/ws-client")).createWebSocketStream(url, { WebSocket: (await import("ws")).default })
    : (await import("@agentclientprotocol/sdk/experimental/http-client")).createHttpStream(url);
  const conn = buildClient().connect(stream);
  await conn.agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const sessions = [];
  const close = () => { try { conn.close?.(); } catch { /* it is over */ } };
  return { close, prompt: async (i, text) => {
    sessions[i] ??= conn.agent.request(acp.methods.agent.session.new, { cwd: "/", mcpServers: [] });
    const { sessionId } = await sessions[i];
    return conn.agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  } };
}

/** What a server holds for connections that have a session and do nothing. */
async function idleNet(o) {
  const { child, url } = await netAgent();
  const first = await netPrompter(url);
  await first.prompt(0, promptText);
  const rest = async () => { await first.prompt(0, "!rest"); return rec.stats; };
  const before = await rest();
  const others = [];
  for (let i = 0; i < o.count; i++) {
    const other = await netPrompter(url);
    await other.prompt(0, promptText);
    others.push(other);
  }
  const after = await rest();
  child.kill("SIGKILL");
  const per = (k, unit) => (after[k] - before[k]) / o.count / unit;
  return { heap: per("heap", 1000), rss: per("rss", 1000), files: per("files", 1) };
}

process.on("unhandledRejection", (e) => { if (!overNet) throw e; });
let agent, prompt;
for await (const line of readline.createInterface({ input: process.stdin })) {
  const o = JSON.parse(line);
  let out;
  try {
    if (o.kind === "idle") {
      out = { metrics: await (overNet ? idleNet(o) : idle(o)) };
    } else {
      if (!agent && overNet) {
        const { child, url } = await netAgent();
        agent = child;
        ({ prompt } = await netPrompter(url));
      } else if (!agent) {
        agent = spawn(process.execPath, [fileURLToPath(new URL("agent.mjs", import.meta.url))], { stdio: ["pipe", "pipe", "inherit"] });
        prompt = prompter(buildClient().connect(nodeStream(agent.stdin, agent.stdout)));
      }
      out = { metrics: await costed(prompt, { trips, updates, read }[o.kind], o) };
    }
  } catch (e) {
    out = { error: String(e?.message ?? e) };
  }
  fs.writeSync(1, JSON.stringify(out) + "\n");
}
if (agent) {
  agent.stdin.end();
  const kill = setTimeout(() => agent.kill("SIGKILL"), 5000);
  await new Promise((res) => (agent.exitCode ?? agent.signalCode) === null ? agent.once("exit", res) : res());
  clearTimeout(kill);
}
process.exit(0);
