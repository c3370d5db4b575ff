// ACP v2 client-side check suite on the official TypeScript SDK.
import * as U from "@agentclientprotocol/sdk/experimental/v2/unstable";
import * as S from "@agentclientprotocol/sdk/experimental/v2";
import { mcpChecks, toyMcp } from "./mcpchecks.mjs";
import { Reporter, Skip, assert, eq, rejectsWith, sleep, until, withTimeout, wireTap } from "./util.mjs";

export function buildV2Client({ unstable = true } = {}) {
  const A = unstable ? U : S;
  const M = A.methods;
  const rec = { updates: [], perms: [], notes: [], done: [], authStatus: [], permMode: "allow", permSignals: 0 };
  const app = A.client({ name: "tspeer-v2-client" });
  app.onNotification(M.client.session.update, ({ params }) => { rec.updates.push(params); rec.onUpdate?.(params); });
  app.onRequest(M.client.session.requestPermission, async ({ params, signal }) => {
    rec.perms.push(params); rec.onPerm?.(params);
    if (rec.decide) return await rec.decide(params, signal);
    if (rec.permMode === "reject") return { outcome: { outcome: "selected", optionId: "reject" } };
    if (rec.permMode === "hold") return await new Promise((res) => {
      // v2 rule: a request the agent cancels with $/cancel_request is answered `cancelled`.
      signal.addEventListener("abort", () => { rec.permSignals++; res({ outcome: { outcome: "cancelled" } }); }, { once: true });
    });
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  });
  app.onRequest(M.client.elicitation.create, ({ params }) => params.mode === "form" ? { action: "accept", content: { name: "Ada" } } : params.mode === "url" ? { action: "accept" } : { action: "decline" });
  app.onNotification(M.client.elicitation.complete, ({ params }) => { rec.done.push(params.elicitationId); });
  app.onRequest("_tspeer/client_echo", (p) => p, ({ params }) => ({ echoed: params ?? null }));
  app.onNotification("_tspeer/client_note", (p) => p, ({ params }) => { rec.notes.push(params); });
  const toy = unstable ? toyMcp(U) : undefined;
  if (unstable) { app.onRequest(M.client.mcp.message, toy.provider.handleRequest); app.onNotification(M.client.auth.statusUpdate, ({ params }) => { rec.authStatus.push(params); }); }
  return { app, rec, A, M, toy };
}

export const v2InitParams = () => ({
  protocolVersion: 2,
  info: { name: "tspeer-v2-client", version: "1.0.0", title: "TS SDK v2 client" },
  capabilities: { auth: { terminal: {} }, elicitation: { form: {}, url: {} } },
});

export async function runV2Checks(open, { unstable = true, script = "auto", prefix = "", promptTimeout = 30000, cwd = process.cwd(), dumpInit = false, transport = "stdio" } = {}) {
  const R = new Reporter(prefix);
  const { app, rec, A, M, toy } = buildV2Client({ unstable });
  const peer = await open();
  const tap = wireTap(peer.stream);
  const conn = app.connect(peer.stream);
  const agent = conn.agent;
  const T = promptTimeout;
  let init, session;
  const okInit = await R.check("initialize", async () => { init = await agent.request(M.agent.initialize, v2InitParams()); eq(init.protocolVersion, 2); assert(init.info?.name && init.info?.version, "info"); return init.info.name; }, T);
  if (dumpInit) process.stderr.write(JSON.stringify(init, null, 1) + "\n");
  if (!okInit) { await peer.close(); return R.summary(); }
  const scripted = script === "auto" ? init._meta?.tspeer?.script === 2 : script === true || script === "on";
  const cap = init.capabilities ?? {};
  if (transport === "stdio") await R.check("initialize-repeat-before-other-requests", async () => { eq((await agent.request(M.agent.initialize, v2InitParams())).protocolVersion, 2); });
  else R.skipped("initialize-repeat-before-other-requests", "AcpServer transports reject a second initialize (HTTP 400 / WS -32600)");
  await R.check("unknown-request-32601", () => rejectsWith(agent.request("tspeer_unknown/method", {}), -32601).then(() => {}));
  await R.check("unknown-notification-ignored", async () => { await agent.notify("tspeer_unknown/n", {}); await sleep(50); assert(!conn.signal.aborted); });
  if (!cap.session) { R.skipped("session/*", "agent does not advertise capabilities.session"); conn.close(); await peer.close(); return R.summary(); }
  await R.check("invalid-params-32602", () => rejectsWith(agent.request(M.agent.session.new, { cwd: 5 }), -32602).then(() => {}));
  if (scripted && init.authMethods?.length) await R.check("auth/login-logout", async () => { await agent.request(M.agent.auth.login, { methodId: init.authMethods[0].methodId }); await agent.request(M.agent.auth.logout, {}); await agent.request(M.agent.auth.login, { methodId: init.authMethods[0].methodId }); });
  const okNew = await R.check("session/new", async () => { const r = await agent.request(M.agent.session.new, { cwd }); session = agent.attachSession(r); return r.sessionId; }, T);
  if (!okNew) { conn.close(); await peer.close(); return R.summary(); }
  await R.check("session/prompt-unknown-session-32002", async () => { const e = await rejectsWith(agent.request(M.agent.session.prompt, { sessionId: "nope", prompt: [{ type: "text", text: "x" }] }), -32002); eq(e.data?.sessionId, "nope"); });
  /** Prompt, then read until an idle snapshot; returns updates of this turn. */
  const ask = async (text, { until } = {}) => withTimeout((async () => {
    const p = session.prompt(text); const got = []; let stop;
    for (;;) { const m = await session.nextUpdate(); if (m.kind === "stop") { stop = m; break; } got.push(m.update); if (until?.(m.update)) break; }
    const r = await p;
    const msg = got.filter((u) => u.sessionUpdate === "agent_message_chunk" && u.content?.type === "text").map((u) => u.content.text).join("");
    return { r, got, stop, msg };
  })(), T, `prompt ${text.slice(0, 30)}`);
  await R.check("session/prompt-basic", async () => {
    const { r, got, stop } = await ask("Reply with the single word: pong");
    assert(typeof r.messageId === "string" && r.messageId, "messageId");
    assert(got.some((u) => u.sessionUpdate === "state_update" && u.state === "running"), "running state");
    return `stopReason=${stop.stopReason}`;
  }, T + 1000);
  await R.check("session/list-pagination", async () => { const seen = []; let cursor, n = 0; do { const r = await agent.request(M.agent.session.list, cursor === undefined ? {} : { cursor }); seen.push(...r.sessions.map((s) => s.sessionId)); cursor = r.nextCursor ?? undefined; } while (cursor !== undefined && ++n < 50); if (scripted) assert(seen.includes(session.sessionId)); return `${seen.length}`; });
  const nr = session.newSessionResponse;
  if (nr.configOptions?.length) await R.check("session/set_config_option", async () => { const sel = nr.configOptions.find((o) => o.type === "select"); const flat = sel.options.flatMap((o) => o.options ?? [o]); const r = await session.setConfigOption({ configId: sel.configId, type: "id", value: flat.at(-1).value }); eq(r.configOptions.find((o) => o.configId === sel.configId).currentValue, flat.at(-1).value); eq(session.configOptions.find((o) => o.configId === sel.configId).currentValue, flat.at(-1).value); });
  await R.check("session/set_config_option-unknown-32602", () => rejectsWith(agent.request(M.agent.session.setConfigOption, { sessionId: session.sessionId, configId: "_nope", type: "id", value: "x" }), -32602).then(() => {}));
  await R.check("session/cancel-idle-is-harmless", async () => { await agent.notify(M.agent.session.cancel, { sessionId: session.sessionId }); await sleep(50); assert(!conn.signal.aborted); });
  await R.check("session/resume-sends-state-before-response", async () => {
    const start = rec.updates.length; let states = 0;
    await agent.request(M.agent.session.resume, { sessionId: session.sessionId, cwd, mcpServers: [] }); await sleep(20);
    states = rec.updates.slice(start).filter((u) => u.update.sessionUpdate === "state_update").length; assert(states >= 1, "no state_update snapshot");
    const replayed = rec.updates.slice(start).filter((u) => /message/.test(u.update.sessionUpdate)).length; eq(replayed, 0, "replay without replayFrom");
    while ((await Promise.race([session.nextUpdate(AbortSignal.timeout(50)).catch(() => null)])) !== null);
  });
  if (scripted) {
    const drain = async () => { for (;;) { const m = await session.nextUpdate(AbortSignal.timeout(40)).catch(() => null); if (!m) return; } };
    await drain();
    await R.check("echo+user_message-id-matches-response", async () => { const { r, got, msg, stop } = await ask("hello"); eq(msg, "echo:hello"); eq(stop.stopReason, "end_turn"); eq(got.find((u) => u.sessionUpdate === "user_message").messageId, r.messageId); });
    await R.check("chunks-ordered", async () => eq((await ask("!chunks 50")).msg, Array.from({ length: 50 }, (_, i) => i).join(",")));
    await R.check("burst-ordered", async () => eq((await ask("!burst 300")).msg, Array.from({ length: 300 }, (_, i) => i).join(",")));
    await R.check("readTextUntilIdle", async () => { const p = session.prompt("!chunks 3"); eq(await session.readTextUntilIdle(), "0,1,2"); await p; });
    await R.check("large-message-8MB", async () => eq((await ask("!big 8000000")).msg.length, 8000000), 30000);
    await R.check("unicode", async () => eq((await ask("!unicode")).msg, "h\u00e9llo \u4e16\u754c \ud83d\ude00 \u2028\u2029 \u0000 \"quoted\" \\n"));
    for (const s of ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "_custom"]) await R.check(`stopReason-${s}`, async () => eq((await ask(`!stop ${s}`)).stop.stopReason, s));
    await R.check("stopReason-none", async () => eq((await ask("!stop none")).stop.stopReason, undefined));
    await R.check("stopReason-error-carries-error", async () => { const { stop } = await ask("!stop error"); eq(stop.stopReason, "error"); eq(stop.update.error, { code: -32603, message: "model down", data: { a: 1 } }); });
    await R.check("all-update-variants", async () => {
      const { got, stop } = await ask("!updates"); const kinds = new Set(got.map((u) => u.sessionUpdate));
      const want = ["user_message_chunk", "user_message", "agent_thought_chunk", "agent_thought", "agent_message", "state_update", "tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk", "plan_update", "available_commands_update", "config_option_update", "session_info_update", "usage_update", "notice", "compaction_update", "compaction_summary_chunk", "_vendor_update"];
      if (unstable && init._meta?.tspeer?.unstable) want.push("plan_removed", "subagent_update", "session_message", "session_message_chunk");
      eq(want.filter((k) => !kinds.has(k)), [], "missing"); eq(session.background, [], "background after idle");
      const done = got.find((u) => u.sessionUpdate === "tool_call_update" && u.status === "completed"); assert(done.capabilities === null && done.title === null, "explicit nulls must survive (null is not omission)"); assert(!("kind" in done) || done.kind === undefined, "omitted stays omitted");
      eq(got.find((u) => u.sessionUpdate === "_vendor_update").payload, { keep: [1, 2] }, "custom payload preserved");
      eq(got.find((u) => u.sessionUpdate === "available_commands_update").availableCommands[1].extra, 1, "custom command payload preserved");
      eq(stop.update.background, []); return `${got.length} updates`;
    });
    await R.check("unknown-and-bad-updates-survive", async () => { const { got, msg } = await ask("!badupdate"); eq(msg, "after-bad"); assert(got.some((u) => u.sessionUpdate === "future_update" && u.x === 1), "future update preserved"); });
    await R.check("lenient-optional-fields", async () => { const { got, msg, stop } = await ask("!lenient"); eq(msg, "after-lenient"); const t = got.find((u) => u.sessionUpdate === "tool_call_update"); assert(t, "dropped"); eq(t.content.length, 1); eq(t.status, undefined); eq(stop.stopReason, undefined, "malformed stopReason = not reported"); return `kind=${JSON.stringify(t.kind)} locations=${JSON.stringify(t.locations)} capabilities=${JSON.stringify(t.capabilities)}`; });
    await R.check("permission-allow", async () => { rec.permMode = "allow"; const { msg, got } = await ask("!perm"); eq(msg, "perm:selected:allow"); assert(got.some((u) => u.state === "requires_action")); });
    await R.check("permission-reject", async () => { rec.permMode = "reject"; eq((await ask("!perm")).msg, "perm:selected:reject"); rec.permMode = "allow"; });
    await R.check("permission-tool-subject", async () => { eq((await ask("!permtool")).msg, "perm:selected"); eq(rec.perms.at(-1).subject.type, "tool_call"); });
    await R.check("permission-custom-subject-preserved", async () => { eq((await ask("!permcustom")).msg, "perm:selected"); eq(rec.perms.at(-1).subject, { type: "_vendor", q: 1 }); });
    await R.check("session/cancel-withdraws-pending-permission-via-$/cancel_request", async () => {
      rec.permMode = "hold"; const before = rec.permSignals; const got = new Promise((r) => { rec.onPerm = r; });
      const p = ask("!perm"); await got; rec.onPerm = undefined; await agent.notify(M.agent.session.cancel, { sessionId: session.sessionId });
      const { stop } = await p; eq(stop.stopReason, "cancelled"); await until(() => rec.permSignals === before + 1, "client abort signal"); /* $/cancel_request has no sessionId: over HTTP it travels on the connection stream */ rec.permMode = "allow";
    });
    await R.check("session/cancel-running", async () => { const seen = new Promise((r) => { rec.onUpdate = (u) => { if (u.update.content?.text === "hanging") r(); }; }); const p = ask("!hang"); await seen; rec.onUpdate = undefined; await agent.notify(M.agent.session.cancel, { sessionId: session.sessionId }); const { stop, msg } = await p; eq([stop.stopReason, msg], ["cancelled", "hanging+late"]); });
    await R.check("held-prompt-withdrawn-by-$/cancel_request--32800", async () => { const ctl = new AbortController(); const p = session.prompt("!hold", { cancellationSignal: ctl.signal }); await sleep(30); ctl.abort(); await rejectsWith(p, -32800); });
    await R.check("held-prompt-answered--32800-on-session/cancel", async () => { const p = session.prompt("!hold"); p.catch(() => {}); await sleep(30); await agent.notify(M.agent.session.cancel, { sessionId: session.sessionId }); await rejectsWith(p, -32800); });
    await R.check("tool_call/cancel", async () => {
      const p = ask("!tool tcA"); const end = Date.now() + 3000; while (!session.canCancelToolCall("tcA") && Date.now() < end) await sleep(5);
      await session.cancelToolCall("tcA"); const { got } = await p; eq(got.filter((u) => u.toolCallId === "tcA").at(-1).status, "cancelled"); eq(session.canCancelToolCall("tcA"), false);
      await rejectsWith(agent.request("tool_call/cancel", { sessionId: session.sessionId, toolCallId: "tcA" }), -32602);
    });
    await R.check("terminal/cancel-background", async () => {
      await ask("!terminal btA"); eq(session.background, [{ type: "terminal", terminalId: "btA" }]); await session.cancelTerminal("btA");
      const end = Date.now() + 3000; while ((session.background?.length ?? 1) !== 0 && Date.now() < end) await sleep(5); eq(session.background, []); await drain();
    });
    await R.check("elicitation-form", async () => eq((await ask("!elicit")).msg, 'elicit:accept:{"name":"Ada"}'));
    await R.check("elicitation-url", async () => { eq((await ask("!eliciturl")).msg, "eliciturl:accept"); await until(() => rec.done.includes("e1"), "elicitation/complete"); });
    await R.check("ext-both-ways", async () => { eq((await ask("!ext q")).msg, 'ext:{"echoed":{"v":"q"}}'); eq(await agent.request("_tspeer/echo", { a: null }), { echoed: { a: null } }); eq((await ask("!extnote z")).msg, "noted"); await until(() => rec.notes.some((n) => n?.v === "z"), "client_note"); /* no sessionId: other HTTP stream, no cross-stream order */ await agent.notify("_tspeer/note", { k: 1 }); await sleep(50); eq((await agent.request("_tspeer/notes")).notes.at(-1), { k: 1 }); });
    await R.check("client-answers-unknown-32601", async () => eq((await ask("!unknown")).msg, "unknown:-32601"));
    await R.check("prompt-rejected-before-insertion", async () => { await rejectsWith(session.prompt("!reject"), -32602); });
    await R.check("handler-exception-32603", async () => { const e = await rejectsWith(session.prompt("!fail"), -32603); return JSON.stringify(e.data); });
    await R.check("custom-error-preserved", async () => { const e = await rejectsWith(session.prompt("!rpcerror"), -32042); eq(e.data, { a: 1 }); });
    await R.check("auth-required", () => rejectsWith(session.prompt("!auth"), -32000).then(() => {}));
    await R.check("concurrent-both-ways", async () => { eq((await ask("!parallel 40")).msg, "parallel:true"); const rs = await Promise.all(Array.from({ length: 60 }, (_, i) => agent.request("_tspeer/echo", { i }))); rs.forEach((r, i) => eq(r.echoed.i, i)); });
    await R.check("content-blocks", async () => { const p = session.prompt([{ type: "text", text: "!blocks" }, { type: "image", data: "AAAA", mimeType: "image/png" }, { type: "audio", data: "AAAA", mimeType: "audio/wav" }, { type: "resource_link", name: "n", uri: "file:///x" }, { type: "resource", resource: { uri: "file:///x", text: "t" } }]); eq(await session.readTextUntilIdle(), "text,image,audio,resource_link,resource"); await p; });
    await R.check("custom-content-block-passes-through", async () => { const p = session.prompt([{ type: "text", text: "!customblock" }, { type: "_vendor_block", deep: { a: [1] } }]); eq(JSON.parse(await session.readTextUntilIdle()), { type: "_vendor_block", deep: { a: [1] } }); await p; });
    await R.check("_meta-propagates", async () => { const r = agent.request(M.agent.session.prompt, { sessionId: session.sessionId, prompt: [{ type: "text", text: "!meta" }], _meta: { traceparent: "x" } }); eq(JSON.parse(await session.readTextUntilIdle()), { traceparent: "x" }); await r; });
    await R.check("mcp-servers", async () => { const mcpServers = [{ type: "stdio", name: "a", command: "/bin/true", args: ["x"], env: [{ name: "K", value: "V" }] }, { type: "http", name: "h", url: "https://e/x", headers: [] }, ...(unstable && init._meta?.tspeer?.unstable ? [{ type: "acp", name: "c", serverId: "s1" }] : [])]; const r = await agent.request(M.agent.session.new, { cwd, mcpServers, additionalDirectories: ["/opt"] }); eq(r._meta.tspeer.mcpServers, mcpServers); });
    await R.check("mcp-duplicate-name-32602", () => rejectsWith(agent.request(M.agent.session.new, { cwd, mcpServers: [{ type: "http", name: "d", url: "https://e/x" }, { type: "http", name: "d", url: "https://e/y" }] }), -32602).then(() => {}));
    await R.check("mcp-unsupported-transport-32602", () => rejectsWith(agent.request(M.agent.session.new, { cwd, mcpServers: [{ type: "_ws", name: "d", url: "wss://x" }] }), -32602).then(() => {}));
    await R.check("session/resume-replay-from-start", async () => { await drain(); const start = rec.updates.length; await agent.request(M.agent.session.resume, { sessionId: session.sessionId, cwd, replayFrom: { type: "start" } }); await sleep(30); const ups = rec.updates.slice(start).map((u) => u.update.sessionUpdate); await drain(); assert(ups.includes("user_message") && ups.includes("agent_message"), ups.slice(0, 5)); eq(ups.at(-1), "state_update"); });
    await R.check("session/resume-bad-cursor-32602", () => rejectsWith(agent.request(M.agent.session.resume, { sessionId: session.sessionId, cwd, replayFrom: { type: "_x" } }), -32602).then(() => {}));
    await R.check("two-sessions", async () => { const s2 = agent.attachSession(await agent.request(M.agent.session.new, { cwd })); const [a, b] = [session.prompt("!chunks 20"), s2.prompt("!chunks 20")]; const [x, y] = await Promise.all([session.readTextUntilIdle(), s2.readTextUntilIdle()]); eq(x, y); await a; await b; s2.dispose(); });
    if (unstable && init._meta?.tspeer?.unstable) {
      await R.check("unstable-status-title-fork", async () => { eq((await agent.request("session/status", { sessionId: session.sessionId })).status, "open"); eq((await agent.request("session/set_title", { sessionId: session.sessionId, title: " t " })).title, "t"); assert((await agent.request("session/fork", { sessionId: session.sessionId, cwd })).sessionId); });
      await R.check("unstable-archive", async () => { const r = await agent.request(M.agent.session.new, { cwd: "/arch2" }); await agent.request("session/archive", { sessionId: r.sessionId }); eq((await agent.request(M.agent.session.list, { cwd: "/arch2" })).sessions.length, 0); eq((await agent.request(M.agent.session.list, { cwd: "/arch2", archived: "only" })).sessions.length, 1); await agent.request("session/unarchive", { sessionId: r.sessionId }); });
      await R.check("unstable-auth/status-providers", async () => { assert((await agent.request("auth/status", {})).state); await agent.request("providers/set", { providerId: "main", apiType: "anthropic", baseUrl: "https://llm/" }); eq((await agent.request("providers/list", {})).providers[0].current.baseUrl, "https://llm/"); });
      if (cap.session?.mcp?.acp) await mcpChecks(R, U, agent, toy, async (t) => { const { msg } = await ask(t); try { return JSON.parse(msg); } catch { return { raw: msg }; } }, (mcpServers) => agent.request(M.agent.session.new, { cwd, mcpServers }), { tsAgent: /^tspeer-/.test(init.info?.name ?? "") });
      await R.check("unstable-usage", async () => eq((await ask("!usage")).stop.update.usage.totalTokens, 30));
    }
    await R.check("session/close-cancels-work", async () => {
      const r = await agent.request(M.agent.session.new, { cwd }); const s2 = agent.attachSession(r); await s2.prompt("!hang"); for (;;) { const m = await s2.nextUpdate(); if (m.kind !== "stop" && m.update.content?.text === "hanging") break; }
      let idleAt = 0, closedAt = 0, n = 0; const reader = (async () => { for (;;) { const m = await s2.nextUpdate(); n++; if (m.kind === "stop") { idleAt = n; eq(m.stopReason, "cancelled"); return; } } })();
      await agent.request(M.agent.session.close, { sessionId: r.sessionId }); await reader; s2.dispose();
      await rejectsWith(agent.request(M.agent.session.prompt, { sessionId: r.sessionId, prompt: [{ type: "text", text: "x" }] }), -32002);
    });
    await R.check("session/close-unknown-treated-as-success", async () => { await agent.request(M.agent.session.close, { sessionId: "nope" }); });
    await R.check("session/delete-idempotent-for-client", async () => { const r = await agent.request(M.agent.session.new, { cwd }); await agent.request(M.agent.session.delete, { sessionId: r.sessionId }); await agent.request(M.agent.session.delete, { sessionId: r.sessionId }); });
    await R.check("initialize-after-other-requests-rejected-locally", async () => { let e; try { await agent.request(M.agent.initialize, v2InitParams()); } catch (x) { e = x; } eq(e?.code, -32600); });
  } else R.skipped("scripted-suite", "agent does not advertise _meta.tspeer.script=2");
  const bare = await open(); const seen = [];
  const known = new Set([...Object.values(A.CLIENT_METHODS), ...Object.values(A.PROTOCOL_METHODS)]);
  const bareApp = A.client({ name: "tspeer-bare" }).onNotification(M.client.session.update, ({ params }) => { if (params.update.state === "idle") bareDone?.(); }).onRequest("*", ({ method }) => { seen.push(method); throw A.RequestError.methodNotFound(method); });
  let bareDone; const bareIdle = new Promise((r) => { bareDone = r; }); const bareConn = bareApp.connect(bare.stream);
  await R.check("bare-client/initialize-auth-method-types", async () => { const r = await bareConn.agent.request(M.agent.initialize, { protocolVersion: 2, info: { name: "bare", version: "0" } }); for (const m of r.authMethods ?? []) assert(m.type === "agent" || m.type.startsWith("_"), `authMethods type ${m.type}`); }, T);
  await R.check("bare-client/no-elicitation-and-only-known-methods", async () => { const r = await bareConn.agent.request(M.agent.session.new, { cwd }); await bareConn.agent.request(M.agent.session.prompt, { sessionId: r.sessionId, prompt: [{ type: "text", text: scripted ? "!updates" : "Reply with the single word: pong" }] }); await withTimeout(bareIdle, T, "idle"); eq(seen.filter((m) => m === "elicitation/create" || !(known.has(m) || m.startsWith("_"))), []); }, T + 1000);
  bareConn.close(); await bare.close();
  await R.check("wire/every-response-answers-one-pending-request", async () => { await sleep(50); eq(tap.bad, []); assert(tap.count() > 0, "no responses seen"); return `${tap.count()} responses`; });
  await R.check("close-rejects-pending", async () => { const p = agent.request(scripted ? "_tspeer/sleep" : "tspeer_unknown/late", { ms: 60000 }).then((v) => ({ v }), (e) => ({ e })); await sleep(20); conn.close(new Error("closing on purpose")); const r = await p; if (scripted) eq(r.e?.message, "closing on purpose"); });
  await R.check("peer-exits-after-disconnect", async () => { const r = await peer.close(); if (r?.killed) throw new Error("peer had to be killed"); return r ? `code=${r.code}` : undefined; });
  return R.summary();
}
