import { useEffect, useRef } from "preact/hooks";
import type { PermissionOption } from "@agentclientprotocol/sdk/experimental/v2";
import { Blocks } from "../parts/Blocks";
import { Body } from "../parts/Tool";
import { asked } from "../asked";
import type { Ask, Conversation } from "../conversation";
import { Form } from "./Form";
import { beginning, prose, seenLine } from "../parts/text";
import { worksOn } from "../vendor";

// Asks are the questions of the agent. They take the focus only when somebody wants to answer.
export function Asks({ talk, unfold }: { talk: Conversation; unfold: () => void }) {
  const asks = talk.asks.value, box = useRef<HTMLDivElement>(null), inside = useRef(false);
  useEffect(() => talk.drawn(), [asks]);
  // Whoever has answered one goes on to the next one, or to the prompt.
  useEffect(() => {
    if (!inside.current || document.activeElement !== document.body) return;
    inside.current = false;
    const next = box.current?.querySelector<HTMLElement>("button, input, select, textarea") ?? document.querySelector<HTMLElement>(matchMedia("(pointer: coarse)").matches ? ".scroll" : "#prompt");
    next?.focus();
  }, [asks]);
  if (talk.folded.value && asks.length > 0) {
    const title = asks[0].kind === "permission" ? asks[0].request.title : asks[0].request.message;
    return (
      <div class="questions" ref={box}>
        <p class="folded" role="status">
          <span class="title">Waiting for an answer{asks.length > 1 && ` (${asks.length})`}: {prose(beginning(title, 200))}</span>
          <button onClick={() => { talk.folded.value = false; }}>Show</button>
        </p>
      </div>
    );
  }
  return (
    <div class="questions" ref={box} onFocusIn={() => { inside.current = true; }} onFocusOut={(e) => { inside.current = e.relatedTarget === null || e.currentTarget.contains(e.relatedTarget as Node); }}>
      {asks.length > 0 && <button class="unfold" onClick={unfold}>Write a prompt</button>}
      {asks.map((a, i) => <One key={a.key} talk={talk} ask={a} first={i === 0} place={asks.length > 1 ? `Question ${i + 1} of ${asks.length}` : ""} />)}
    </div>
  );
}

function One({ talk, ask, first, place }: { talk: Conversation; ask: Ask; first: boolean; place: string }) {
  const id = "ask-" + ask.key;
  if (ask.kind === "form") return <section class="ask" role="group" aria-labelledby={id}>{place && <p class="place">{place}</p>}{worksOn(ask.request._meta) && <p class="said">The agent works on meanwhile; an answer after it has finished may come too late.</p>}<Form id={id} request={ask.request} answer={(r) => { if (r.action === "cancel") talk.putAside(performance.now()); else ask.answer(r); }} /></section>;
  const { subject, options } = ask.request;
  const call = subject?.type === "tool_call" ? (subject as { toolCall: { toolCallId: string } }).toolCall : null;
  const known = call ? talk.fold.value.tool(call.toolCallId) : undefined;
  void known?.rev.value;
  const q = asked(ask.request, call && { ...known?.call, ...Object.fromEntries(Object.entries(call).filter(([, v]) => v !== null && v !== undefined)) } as never);
  return (
    <section class="ask" role="group" aria-labelledby={id} data-ask={ask.key}>
      <div class="asked" tabIndex={0} role="group" aria-label="What is asked">
        {place && <p class="place">{place}</p>}
        {q.theirs && <p class="said">The agent says:</p>}
        <h3 id={id}>{q.title}</h3>
        {q.description && <Blocks content={[{ type: "text", text: q.description }]} live={false} />}
        {q.command && <pre class="command" aria-label="Command">$ {q.command}</pre>}
        {q.cwd && <p class="said">in {q.cwd}</p>}
        {q.call?.title && !q.title.includes(q.call.title) && <p class="said">Tool: {q.call.title}</p>}
        {q.call && <Body call={q.call} content={q.call.content ?? []} terminals={(t) => talk.fold.value.terminal(t)} whole />}
        {q.input.length > 0 && <dl class="input">{q.input.map((v) => <><dt>{v.name || "Input"}</dt><dd>{v.text}</dd></>)}</dl>}
      </div>
      <p class="options">
        {options.map((o, i) => <Choice key={o.optionId} o={o} n={first && i < 9 ? i + 1 : 0} choose={(at) => ask.answer(o.optionId, at)} />)}
        <button class="dismiss" onClick={(e) => talk.putAside(e.timeStamp)}>Dismiss</button>
      </p>
    </section>
  );
}

const marks: Record<string, string> = { allow_once: "✓", allow_always: "✓✓", reject_once: "✗", reject_always: "✗✗" };

// Choice is an answer, with the digit that chooses it, if there is one. What it does is never said by a colour alone.
function Choice({ o, n, choose }: { o: PermissionOption; n: number; choose: (at: number) => void }) {
  const kind = String(o.kind), name = seenLine(o.name || o.optionId);
  const lasting = kind.endsWith("_always") && !/always/i.test(name);
  return (
    <button class={"choice " + kind} data-answer aria-keyshortcuts={n ? String(n) : undefined} onClick={(e) => { if (e.detail < 2) choose(e.timeStamp); }}>
      {n > 0 && <kbd aria-hidden="true">{n}</kbd>} {marks[kind] && <span class="mark" aria-hidden="true">{marks[kind]}</span>} {name}{lasting && <span class="lasting"> (always)</span>}
    </button>
  );
}
