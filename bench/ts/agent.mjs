// The agent side of the TypeScript SDK; see messages.go for the commands.
import * as acp from "@agentclientprotocol/sdk";
import { pathToFileURL } from "node:url";
import { chunkText, diffPath, diffTexts, nodeStream, parseCommand, processStats } from "./shared.mjs";

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
      case "stats":
        await client.notify(update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: JSON.stringify(processStats()) } } });
        break;
    }
    return { stopReason: "end_turn" };
  });
  return app;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const conn = buildAgent().connect(nodeStream(process.stdout, process.stdin));
  await conn.closed;
  process.exit(0);
}
