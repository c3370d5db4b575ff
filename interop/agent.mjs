// An agent on the official TypeScript SDK: echoes its prompt word by word.
//   node agent.mjs 1|2
import { Readable, Writable } from "node:stream";
const version = Number(process.argv[2]);
const sdk = await import(version === 1 ? "@agentclientprotocol/sdk" : "@agentclientprotocol/sdk/experimental/v2");
const { ndJsonStream } = await import("@agentclientprotocol/sdk");
const M = sdk.methods;
const app = sdk.agent({ name: "interop-agent" });
const info = { name: "interop-agent", version: "1.0.0" };
let sessions = 0;
app.onRequest(M.agent.initialize, () =>
  version === 1
    ? { protocolVersion: 1, agentCapabilities: {}, agentInfo: info, authMethods: [] }
    : { protocolVersion: 2, info, capabilities: { session: {} }, authMethods: [] });
app.onRequest(M.agent.session.new, () => ({ sessionId: `ts-${++sessions}` }));
app.onRequest(M.agent.session.prompt, async ({ params, client }) => {
  const text = params.prompt.map((b) => b.text ?? "").join("");
  const update = (u) => client.notify(M.client.session.update, { sessionId: params.sessionId, update: u });
  const say = async (extra) => {
    for (const word of text.split(/(?<= )/)) {
      await update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: word }, ...extra });
    }
  };
  if (version === 1) {
    await say({});
    return { stopReason: "end_turn" };
  }
  setImmediate(async () => {
    await update({ sessionUpdate: "user_message", messageId: "u1", content: params.prompt });
    await update({ sessionUpdate: "state_update", state: "running" });
    await say({ messageId: "a1" });
    await update({ sessionUpdate: "state_update", state: "idle", stopReason: "end_turn" });
  });
  return { messageId: "u1" };
});
const conn = app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
await conn.closed;
process.exit(0);
