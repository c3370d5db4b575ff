// A conversation, of the parts that the page of the gateway has, too.

import { memo } from "preact/compat";
import { Blocks } from "../parts/Blocks";
import { Json } from "../parts/Json";
import { PlanView } from "../parts/Plan";
import { type TerminalState, TerminalView } from "../parts/Terminal";
import { type ToolCall, ToolView } from "../parts/Tool";
import { number, size, seenCode } from "../parts/text";
import { Usage } from "../parts/Usage";
import type { Entry, SessionInfo, Talk, Update } from "./types";

/** An Item is an entry with the terminals that it shows. It is drawn again when it is another one. */
export interface Item {
  entry: Entry;
  terminals: Map<string, Entry>;
  mark: string; // what it says
}

interface Props {
  sessions: SessionInfo[];
  chosen: string;
  choose: (id: string) => void;
  talk: Talk | undefined;
  items: Item[];
  /** The server has ended. */
  gone: boolean;
}

/** Conversations shows the sessions, and the conversation of the one that is chosen. */
export function Conversations({ sessions, chosen, choose, talk, items, gone }: Props) {
  if (sessions.length === 0) {
    return <div class="empty"><h2>No session</h2><p>The conversation appears here when the client has opened a session.</p></div>;
  }
  const dropped = talk?.transcript.dropped?.entries ?? 0;
  return (
    <>
      <nav class="sessions" aria-label="Sessions" hidden={sessions.length < 2}>
        {sessions.map((s) => (
          <button key={s.id} aria-current={s.id === chosen ? "true" : undefined} onClick={() => choose(s.id)} title={seenCode(s.id)}>
            <span class="name">{seenCode(s.title || s.id)}</span>
            {s.title && <span class="id">{seenCode(s.id)}</span>}
          </button>
        ))}
      </nav>
      <h2 class="unseen">Conversation</h2>
      <div class="conversation" key={chosen} tabIndex={0} role="log" aria-live="off" aria-label="Conversation">
        {dropped > 0 && <p class="note">The beginning was too long to keep: {number(dropped)} {dropped === 1 ? "entry is" : "entries are"} not shown.</p>}
        {talk?.failed && <p class="note">The server no longer has this conversation.</p>}
        {!talk && gone && <p class="note">This conversation was not fetched before acp ended; the recording has it.</p>}
        {items.map((item, i) => <ItemView key={i} item={item} />)}
        {talk && <State session={talk.transcript.session ?? {}} />}
      </div>
    </>
  );
}

const ItemView = memo(
  function ItemView({ item }: { item: Item }) {
    const { entry, terminals } = item;
    const u = entry.update ?? {};
    switch (entry.kind) {
      case "message": return <MessageView update={u} entry={entry} />;
      case "tool_call": return <><ToolView call={call(u)} terminals={(id) => terminal(terminals.get(id))} /><Lost entry={entry} /></>;
      case "plan": return <PlanView plan={u.plan ?? {}} removed={entry.removed} />;
      case "permission": return <Permission entry={entry} />;
      case "terminal": return <article class="entry"><TerminalView terminal={terminal(entry)!} /><Lost entry={entry} /></article>;
      case "notice": return <article class="entry notice"><h3>{seenCode(u.title || "Notice")}</h3><p>{seenCode(u.description ?? "")}</p></article>;
      default: return (
        <article class="entry"><details><summary>{seenCode(entry.kind + (u.title ? " · " + u.title : ""))}</summary><Json value={entry.update ?? entry} /></details></article>
      );
    }
  },
  (a, b) => a.item === b.item,
);

function MessageView({ update, entry }: { update: Update; entry: Entry }) {
  const content = update.content ?? [];
  switch (update.sessionUpdate) {
    case "agent_thought": return (
      <article class="message thought" aria-label="Thought"><details open><summary>Thought</summary><Blocks content={content} /><Lost entry={entry} /></details></article>
    );
    case "user_message": return <article class="message user"><h3>User</h3><Blocks content={content} /><Lost entry={entry} /></article>;
    default: return <article class="message agent"><h3>Agent</h3><Blocks content={content} /><Lost entry={entry} /></article>;
  }
}

function Lost({ entry }: { entry: Entry }) {
  return entry.dropped ? <p class="note">{size(entry.dropped)} of this were too much to keep.</p> : null;
}

function call(u: Update): ToolCall {
  return { ...u, toolCallId: u.toolCallId || "tool call" };
}

// terminal returns what is known of a terminal. Its output is shown with its colours if it was recorded.
function terminal(entry: Entry | undefined): TerminalState | undefined {
  if (!entry) return undefined;
  const u = entry.update ?? {};
  return {
    command: u.command ?? "", cwd: u.cwd ?? "", text: output(u.output?.data) ?? entry.text ?? "", skipped: 0, skippedBytes: entry.skipped,
    exit: u.exitStatus ?? undefined, // whether it runs cannot be known of a recording
  };
}

function output(base64: unknown): string | null {
  if (typeof base64 !== "string") return null;
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
}

function Permission({ entry }: { entry: Entry }) {
  const { outcome, options = [] } = entry;
  const picked = outcome?.outcome === "selected" ? options.find((o) => o.optionId === outcome.optionId) : undefined;
  const said = !outcome ? "no answer so far"
    : picked ? picked.name || picked.optionId || ""
    : outcome.outcome === "selected" ? "an option that was not offered: " + outcome.optionId
    : outcome.outcome || "unknown";
  return (
    <article class="entry permission">
      <h3><span class="kind">permission</span>{seenCode(entry.title ?? "")}<span class="status">{seenCode(said)}</span></h3>
      {entry.description && <p>{seenCode(entry.description)}</p>}
      <p class="options">{options.map((o, i) => <span key={i} class={"option" + (o === picked ? " picked" : "")}>{seenCode(o.name || o.optionId || "")}</span>)}</p>
    </article>
  );
}

function State({ session: { state, usage } }: { session: NonNullable<Talk["transcript"]["session"]> }) {
  return (
    <p class={"session-state" + (state && state.state !== "idle" ? " busy" : "")}>
      {state && <span>{seenCode(state.state === "idle" ? "idle" + (state.stopReason ? " · " + state.stopReason : "") : state.state)}</span>}
      {usage && usage.size > 0 && <Usage usage={usage} />}
    </p>
  );
}
