// The peer: the agent of agent.go on the TypeScript SDK, in the same process as the SDK's server.
import * as acp from "@agentclientprotocol/sdk";
import { createServer } from "node:http";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { createNodeHttpHandler } from "@agentclientprotocol/sdk/experimental/node";

const update = acp.methods.client.session.update;
const now = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1e3)) * 1000n;
const say = (client, sessionId, text) =>
  client.notify(update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } });

let opened = 0;
const sessions = new Map(); // what each has said

function createAgent() {
  const app = acp.agent({ name: "peer" });
  app.onRequest(acp.methods.agent.initialize, async () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true } }));
  app.onRequest(acp.methods.agent.session.new, async () => {
    const sessionId = `s${opened++}`;
    sessions.set(sessionId, []);
    return { sessionId };
  });
  app.onRequest(acp.methods.agent.session.load, async ({ params, client }) => {
    for (const text of sessions.get(params.sessionId) ?? []) await say(client, params.sessionId, text);
    return {};
  });
  app.onRequest(acp.methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    const w = JSON.parse(prompt[0].text);
    const start = performance.now();
    const said = sessions.get(sessionId);
    for (let i = 0; i < w.n; i++) {
      if (w.every > 0) {
        const wait = start + (i * w.every) / 1000 - performance.now();
        if (wait > 0) await new Promise((r) => setTimeout(r, wait));
      }
      const text = `${i} ${now()} `.padEnd(w.size, "x");
      said.push(text);
      await say(client, sessionId, text);
    }
    return { stopReason: "end_turn" };
  });
  return app;
}

const server = createServer(createNodeHttpHandler(new AcpServer({ createAgent })));
await new Promise((res) => server.listen(0, "127.0.0.1", res));
process.stdout.write(`http://127.0.0.1:${server.address().port}/acp\n`);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
process.on("SIGINT", () => process.exit(0));
