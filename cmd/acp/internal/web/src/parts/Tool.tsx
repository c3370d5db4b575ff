// A tool call.

import type { DiffChange, DiffPatch, ToolCallContent, ToolCallLocation } from "@agentclientprotocol/sdk/experimental/v2";
import { useContext, useState } from "preact/hooks";
import { Ansi } from "./Ansi";
import { Blocks } from "./Blocks";
import { Diff } from "./Diff";
import { Icon } from "./Icon";
import { Brief, Json } from "./Json";
import { type TerminalState, TerminalView } from "./Terminal";
import { beginning, plural, visible } from "./text";
import { Whole } from "./whole";
import { parentIn } from "../vendor";

const most = 200; // parts of the content
const places = 20; // of files

/** A ToolCall is what the updates of a tool call come to. */
export interface ToolCall {
  toolCallId: string;
  title?: string | null;
  name?: string | null;
  kind?: string | null;
  status?: string | null;
  content?: readonly ToolCallContent[] | null;
  locations?: readonly ToolCallLocation[] | null;
  rawInput?: unknown;
  rawOutput?: unknown;
  _meta?: { [key: string]: unknown } | null;
}

/** A ToolDecision is how a question about a tool call was decided. */
export interface ToolDecision {
  by: string;
  rule: boolean;
  name: string;
  kind: string;
  outcome: string;
  at: number;
}

export interface ToolProps {
  call: ToolCall;
  /** The terminals that the call may show. */
  terminals: (id: string) => TerminalState | undefined;
  /** How questions about it were decided. */
  decided?: readonly ToolDecision[];
  /** Characters of its content that are not kept. */
  skipped?: number;
}

const statuses: Record<string, string> = {
  pending: "pending", in_progress: "running", paused: "paused", completed: "done", failed: "failed", cancelled: "cancelled",
};

/** ToolView shows a tool call as a line that opens. It is open from the start as long as it runs, if it failed, and if it
 * changes files. */
export function ToolView({ call, terminals, decided = [], skipped }: ToolProps) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const status = call.status ?? "pending", kind = call.kind ?? "other";
  const content = call.content ?? [];
  const open = chosen ?? (status === "in_progress" || status === "failed" || content.some((c) => c?.type === "diff"));
  const known = Object.hasOwn(statuses, status), rejected = status === "cancelled" && decided.at(-1)?.kind.startsWith("reject");
  const title = visible(beginning(call.title || call.name || call.toolCallId, 1000));
  const empty = content.length === 0 && !call.locations?.length && call.rawInput === undefined && call.rawOutput === undefined;
  const head = (
    <h3>
      {parentIn(call._meta) !== "" && <span class="kind" title="made by another tool call">↳</span>}
      <Icon kind={kind} />
      <span class="title">{title}</span>
      {call.name && call.title && call.name !== call.title && <span class="kind">{visible(beginning(call.name, 80))}</span>}
      <span class="status">{status === "in_progress" && <span class="pulse" aria-hidden="true" />}{rejected ? "rejected" : known ? statuses[status] : visible(beginning(status, 40))}</span>
    </h3>
  );
  const name = "entry tool status-" + (known ? status : "pending");
  const said = decided.map((d, i) => <Decided key={i} d={d} />);
  if (empty) return <article class={name}>{head}{said}</article>;
  return (
    <article class={name}>
      <details open={open}>
        <summary onClick={(e) => { e.preventDefault(); setChosen(!open); }}>{head}</summary>
        {open && <Body call={call} content={content} terminals={terminals} skipped={skipped} />}
      </details>
      {said}
    </article>
  );
}

const decisions: Record<string, string> = {
  allow_once: "Allowed once", allow_always: "Always allowed", reject_once: "Rejected", reject_always: "Always rejected",
};

// Decided says what was decided, by whom and when.
function Decided({ d }: { d: ToolDecision }) {
  const no = d.outcome === "" || d.outcome === "cancelled";
  const what = Object.hasOwn(decisions, d.kind) ? decisions[d.kind] : no ? (d.by ? "Dismissed" : "Not answered") : "Answered: " + visible(beginning(d.name || d.outcome, 200));
  const at = Number.isNaN(d.at) ? null : new Date(d.at);
  return (
    <p class={"decided" + (d.kind.startsWith("reject") ? " bad" : "")}>
      {what}{d.rule ? " by a rule" : d.by && " by " + visible(beginning(d.by, 80))}
      {at && <>, <time dateTime={at.toISOString()} title={at.toLocaleString()}>{at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}</time></>}
    </p>
  );
}

/** Body is what is in a tool call; it is shown whole if somebody decides about it. */
export function Body({ call, content, terminals, skipped = 0, whole = false }: ToolProps & { content: readonly ToolCallContent[]; whole?: boolean }) {
  const cut = whole ? (text: string) => text : beginning, [files, parts] = whole ? [Infinity, Infinity] : [places, most];
  return (
    <Whole.Provider value={whole}>
      <div class="body">
        {call.locations && call.locations.length > 0 && (
          <p class="locations">
            {call.locations.slice(0, files).map((l) => visible(cut(l?.path ?? "", 1000)) + (l?.line != null ? ":" + l.line : "")).join("  ")}
            {call.locations.length > files && "  " + plural(call.locations.length - files, "file") + " more"}
          </p>
        )}
        {skipped > 0 && <p class="note">{plural(skipped, "character")} before this are not kept.</p>}
        {content.slice(0, parts).map((c, i) => <Part key={i} content={c} kind={call.kind ?? ""} terminals={terminals} />)}
        {content.length > parts && <p class="note">{plural(content.length - parts, "part")} more</p>}
        {call.rawInput !== undefined && <details class="other"><summary>Input <Brief value={call.rawInput} /></summary><Json value={call.rawInput} /></details>}
        {call.rawOutput !== undefined && <details class="other"><summary>Output <Brief value={call.rawOutput} /></summary><Json value={call.rawOutput} /></details>}
      </div>
    </Whole.Provider>
  );
}

const fenced = /^\s*(`{3,}|~{3,})[^\n]*\n([\s\S]*?)\n?\1\s*$/; // a text that is all code

// printed returns a text as a program has printed it, or undefined if it is written for people: a text with the codes of
// terminals, and what a command has said.
function printed(block: unknown, kind: string): string | undefined {
  const { type, text } = block as { type?: unknown; text?: unknown };
  if (type !== "text" || typeof text !== "string") return undefined;
  if (text.includes("\x1b[")) return fenced.exec(text)?.[2] ?? text;
  return kind === "execute" && !/^ {0,3}(`{3,}|~{3,})/m.test(text) ? text : undefined;
}

function Part({ content, kind, terminals }: { content: ToolCallContent; kind: string } & Pick<ToolProps, "terminals">) {
  const whole = useContext(Whole);
  const c = (content ?? {}) as { type?: unknown; [key: string]: unknown };
  switch (c.type) {
    case "content":
      if (c.content !== null && typeof c.content === "object") {
        const text = printed(c.content, kind);
        return text === undefined ? <Blocks content={[c.content as never]} /> : <Ansi text={text} />;
      }
      break;
    case "diff":
      if (Array.isArray(c.changes)) return <Diff changes={c.changes as DiffChange[]} patch={c.patch as DiffPatch | null | undefined} />;
      break;
    case "terminal": {
      const id = String(c.terminalId);
      const t = terminals(id);
      return t ? <TerminalView terminal={t} /> : <p class="other">[terminal {visible(beginning(id, 200))}]</p>;
    }
    case "session": { // of the subagent that does it, which has an entry of its own
      const id = String(c.sessionId), shows = () => document.querySelector(`[data-entry="${CSS.escape("subagent:" + id)}"]`)?.scrollIntoView({ block: "center" });
      return <p class="other"><button type="button" onClick={shows} title={visible(beginning(id, 200))}>Show the subagent</button></p>;
    }
  }
  return <details class="other" open={whole}><summary>{visible(beginning(String(c.type), 80))}</summary><Json value={content} /></details>;
}
