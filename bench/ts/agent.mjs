// The agent side of the TypeScript SDK; see messages.go for the commands.
import * as acp from "@agentclientprotocol/sdk";
import { pathToFileURL } from "node:url";
import { chunkText, diffPath, diffTexts, nodeStream, parseCommand, processStats, restStats, sessionId as sessionIdOf } from "./shared.mjs";

export function buildAgent() {
  const app = acp.agent({ name: "bench-agent" });
  const update = acp.methods.client.session.update;
  app.onRequest(acp.methods.agent.session.prompt, async ({ params, client }) => {
    const { sessionId, prompt } = params;
    const cmd = parseCommand(prompt[0].text);
    switch (cmd?.verb) {
      case "updates": {
        const text = chunkText(Number(cmd.arg));
        for (let i = 0; i < cmd.n; i++) {
          await client.notify(update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } });
        }
        break;
      }
      case "diffs": {
        const [oldText, newText] = diffTexts();
        for (let i = 0; i < cmd.n; i++) {
          await client.notify(update, { sessionId, update: { sessionUpdate: "tool_call_update", toolCallId: "call-17", content: [{ type: "diff", path: diffPath, oldText, newText }] } });
        }
        break;
      }
      case "read": {
        const r = await client.request(acp.methods.client.fs.readTextFile, { sessionId, path: `/home/user/${cmd.arg}-${cmd.n}.txt` });
        if (r.content.length !== cmd.n) throw new Error(`read ${r.content.length} characters, want ${cmd.n}`);
        break;
      }
      case "rest":
        for (let i = 0; i < 3; i++) globalThis.gc?.();
        await client.notify(update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: JSON.stringify(restStats()) } } });
        break;
      case "stats":
        await client.notify(update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: JSON.stringify(processStats()) } } });
        break;
    }
    return { stopReason: "end_turn" };
  });
  return app;
}

/** An agent that is met over the network, where a connection begins with initialize. */
function buildNetAgent() {
  const app = buildAgent();
  let opened = 0;
  app.onRequest(acp.methods.agent.initialize, async () => ({ protocolVersion: 1, agentCapabilities: {} }));
  app.onRequest(acp.methods.agent.session.new, async () => ({ sessionId: sessionIdOf(opened++) }));
  return app;
}

/** Serves over the network until standard input ends; prints the URL. */
async function listen(mode) {
  const { createServer } = await import("node:http");
  const { WebSocketServer } = await import("ws");
  const { AcpServer } = await import("@agentclientprotocol/sdk/experimental/server");
  const { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } = await import("@agentclientprotocol/sdk/experimental/node");
  const acpServer = new AcpServer({ createAgent: buildNetAgent });
  const server = createServer(createNodeHttpHandler(acpServer));
  server.on("upgrade", createNodeWebSocketUpgradeHandler(acpServer, new WebSocketServer({ noServer: true })));
  await new Promise((res) => server.listen(0, "127.0.0.1", res));
  process.stdout.write(`${mode}://127.0.0.1:${server.address().port}/acp\n`);
  process.stdin.resume();
  process.stdin.on("end", () => process.exit(0));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href && process.argv[2]) {
  await listen(process.argv[2]);
} else if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const conn = buildAgent().connect(nodeStream(process.stdout, process.stdin));
  await conn.closed;
  process.exit(0);
}
