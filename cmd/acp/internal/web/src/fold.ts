// Folding updates into what is shown: messages, tool calls, plans and the like, in the order in which they began.

import { signal, type Signal } from "@preact/signals";
import type { AvailableCommand, BackgroundWork, ContentBlock, SessionConfigOption, SessionUpdate, StateUpdate, TerminalExitStatus, ToolCallContent, ToolCallUpdate, UpdateSessionNotification, UsageUpdate } from "@agentclientprotocol/sdk/experimental/v2";
import { decisionIn, type Decision, type Meta, parentOf, said } from "./meta";
import { afterTask } from "./task";
import { recordOf } from "./window";

// An Entry is something that is shown. rev changes whenever it does. at and last are the first and the last record that it
// is made of, and changes counts what it is made of, so that it is known whether two are the same.
interface Base {
  key: string;
  rev: Signal<number>;
  at: number;
  last: number;
  changes: number;
}

export interface Message extends Base {
  kind: "message";
  role: "user" | "agent" | "thought";
  author: string; // of a prompt, if the gateway says it
  content: ContentBlock[];
  skipped: number; // characters before content
  live: boolean; // more may come
}

export interface Tool extends Base {
  kind: "tool";
  call: ToolCallUpdate;
  decided: Decision[]; // on what was asked about it
  skipped: number; // characters of the content that are not kept
}

export interface Terminal extends Base {
  kind: "terminal";
  id: string;
  command: string;
  cwd: string;
  text: string;
  skipped: number; // characters before text
  exit: TerminalExitStatus | null;
  shown: boolean; // in a tool call
}

export interface Plan extends Base {
  kind: "plan";
  plan: Record<string, unknown> & { type?: string };
  removed: boolean;
}

export interface Notice extends Base {
  kind: "notice";
  severity: string;
  title: string;
  description: string;
}

export interface Compaction extends Base {
  kind: "compaction";
  status: string;
  summary: ContentBlock[];
  skipped: number; // characters before summary
  error: string;
}

export interface Subagent extends Base {
  kind: "subagent";
  title: string;
  description: string;
  state: string;
  fold: Fold; // what it does
}

// A Turn is the end of one that did not end as most do.
export interface Turn extends Base {
  kind: "turn";
  reason: string;
  text: string;
  by: string; // who has stopped it, if the gateway says it
  lost: boolean; // what ran it has ended in the middle
}

// Other is something that this page does not know.
export interface Other extends Base {
  kind: "other";
  name: string;
  update: unknown;
}

export type Entry = Message | Tool | Terminal | Plan | Notice | Compaction | Subagent | Turn | Other;

// A New is an entry that is not part of a fold yet.
type New<E> = E extends Entry ? Omit<E, "rev" | "at" | "last" | "changes"> : never;

// A State is what a session does.
export type State = "idle" | "running" | "requires_action" | string;

// Bounds of what is kept of an entry that grows. If it has more, the last ones are kept, and a quarter less than there may be:
// what begins anew is drawn anew.
const maxTerminal = 512 << 10; // characters of the output of a command
const maxText = 200_000; // characters of a text; of a longer one not all would be drawn
const maxAway = 4 * maxText; // the same while somebody reads what was before
const mostDecided = 20; // decisions on one tool call
const maxBlocks = 500; // texts, pictures and the like in a message

// A Suggestion is a prompt that the agent suggests.
export interface Suggestion {
  prompt: ContentBlock[];
}

// A Cursor is a position of the session that the agent has reported. The first update of it says where it is.
export interface Cursor {
  id: string;
  beside: string; // the key of an entry; "" if that is nothing that this page knows
  position: string;
  forks: boolean; // the session can be forked there
}

const mostCursors = 4096; // the latest

// A Reader is who looks at a fold.
export interface Reader {
  away: boolean; // and not at its end
  shifts(): void; // is called before an entry begins with something else than it did
}

// A Fold folds the updates of one session and its subagents, or of a part of these.
export class Fold {
  readonly entries = signal<Entry[]>([]);
  readonly state = signal<State>("idle");
  readonly background = signal<BackgroundWork[]>([]);
  readonly usage = signal<UsageUpdate | null>(null);
  readonly commands = signal<AvailableCommand[]>([]);
  readonly options = signal<SessionConfigOption[]>([]);
  readonly suggestions = signal<Suggestion[]>([]);
  readonly cursors = signal<readonly Cursor[]>([]);
  readonly title = signal<string | null>(null);

  private list: Entry[] = [];
  private by = new Map<string, Entry>();
  private dirty = new Set<Entry>();
  private grown = false;
  private frame = 0;
  private talking: Message | null = null; // the message that grows
  private readonly decoders = new Map<string, TextDecoder>();
  private readonly encoded = new TextEncoder();

  // subagents are all of the session, by their sessions. of is the session of the one that this is about, "" for none.
  constructor(private readonly reader: Reader = { away: false, shifts() {} }, private readonly subagents = new Map<string, Subagent>(), private readonly of = "") {}

  // add folds an update. What is shown changes with the next frame.
  add(n: UpdateSessionNotification): void {
    if (!this.of && parentOf(n.sessionId) !== n.sessionId) return this.subagentOf(n.sessionId).fold.add(n);
    this.fold(n.update, n);
    this.later();
  }

  // all folds updates of which nothing is shown meanwhile.
  all(list: UpdateSessionNotification[]): void {
    this.silent = true;
    for (const n of list) this.add(n);
    this.silent = false;
    this.flush();
  }

  private silent = false;

  // later has what has changed shown soon.
  private later() {
    if ((this.dirty.size > 0 || this.grown) && !this.frame && !this.silent) {
      // Frames do not come while the page is hidden.
      this.frame = -1;
      if (document.hidden) setTimeout(() => this.flush(), 250);
      else if (performance.now() >= this.rests) this.frame = requestAnimationFrame(() => this.shown());
      else setTimeout(() => this.frame === -1 && (this.frame = requestAnimationFrame(() => this.shown())), this.rests - performance.now());
    }
  }

  private rests = 0; // until when nothing is shown
  private drew = 0; // when something was last shown
  private row = 0; // how often that was, without a pause

  // shown is flush in a frame. What goes on and takes long to draw is drawn less often: at most half of the time.
  private shown() {
    const begin = performance.now();
    this.row = begin - this.drew < 200 ? this.row + 1 : 0;
    this.drew = begin;
    this.flush();
    if (this.row < 4) return;
    afterTask(() => {
      const end = performance.now();
      this.rests = end + Math.min(end - begin, 100) - 8;
    });
  }

  // flush shows what has changed.
  flush() {
    if (this.frame > 0) cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.grown) {
      this.grown = false;
      this.entries.value = this.list.slice();
    }
    for (const e of this.dirty) e.rev.value++;
    this.dirty.clear();
    if (!this.of) for (const s of this.subagents.values()) s.fold.flush();
  }

  // drop removes an entry.
  drop(key: string) {
    if (!this.by.delete(key)) return;
    this.list = this.list.filter((e) => e.key !== key);
    this.grown = true;
    this.flush();
  }

  // terminal returns a terminal, if there is one of that name.
  terminal(id: string): Terminal | undefined {
    return this.by.get("terminal:" + id) as Terminal | undefined;
  }

  // tool returns a tool call, if there is one of that name.
  tool(id: string): Tool | undefined {
    return this.by.get("tool:" + id) as Tool | undefined;
  }

  // aside takes from an update that is not shown here what it says of the session as a whole.
  aside(n: UpdateSessionNotification) {
    if (parentOf(n.sessionId) === n.sessionId) this.general(n.update);
  }

  private general(u: SessionUpdate) {
    switch (u.sessionUpdate) {
      case "state_update": {
        const { state, background } = u as StateUpdate & { background?: BackgroundWork[] | null };
        this.state.value = state;
        if (background !== undefined) this.background.value = background ?? [];
        return;
      }
      case "usage_update": { // what it leaves out of _meta stays
        const { _meta: before } = this.usage.value ?? {}, { _meta: after } = u as UsageUpdate;
        this.usage.value = { ...(u as UsageUpdate), _meta: after === null ? null : { ...before, ...after } } as never;
        return;
      }
      case "available_commands_update": this.commands.value = (u as { availableCommands: AvailableCommand[] }).availableCommands; return;
      case "config_option_update": this.options.value = (u as { configOptions: SessionConfigOption[] }).configOptions; return;
      case "prompt_suggestions_update": this.suggestions.value = (u as unknown as { suggestions: Suggestion[] }).suggestions; return;
      case "cursor_update": return this.cursor(u as never);
      case "session_info_update": {
        const { title } = u as { title?: string | null };
        if (title !== undefined) this.title.value = title;
      }
    }
  }

  private cursor(u: { cursorId: string; capabilities?: { fork?: object | null } | null; anchor?: { type?: string; messageId?: string; toolCallId?: string; position?: string } | null }) {
    if (this.of || typeof u.cursorId !== "string") return;
    const before = this.cursors.value.find((c) => c.id === u.cursorId);
    const forks = u.capabilities === undefined ? (before?.forks ?? false) : !!u.capabilities?.fork;
    if (before) this.cursors.value = this.cursors.value.map((c) => (c === before ? { ...c, forks } : c));
    else if (u.anchor) this.cursors.value = [...this.cursors.value, { id: u.cursorId, beside: besideOf(u.anchor), position: text(u.anchor.position), forks }].slice(-mostCursors);
  }

  // keep has what is the same in an earlier fold of the session be that, so that it is not drawn again.
  keep(old: Fold) {
    this.list = this.list.map((e) => {
      const was = old.by.get(e.key);
      if (e.kind === "subagent" && was?.kind === "subagent") e.fold.keep(was.fold);
      if (!was || !same(was, e)) return e;
      this.by.set(e.key, was);
      if (this.talking === e) this.talking = was as Message;
      return was;
    });
    this.grown = true;
  }

  private record = 0; // of the update that is folded

  private fold(u: SessionUpdate, n: UpdateSessionNotification) {
    this.record = recordOf(n) ?? 0;
    switch (u.sessionUpdate) {
      case "user_message": return this.message("user", u as never, n);
      case "agent_message": return this.message("agent", u as never, n);
      case "agent_thought": return this.message("thought", u as never, n);
      case "user_message_chunk": return this.chunk("user", u as never, n);
      case "agent_message_chunk": return this.chunk("agent", u as never, n);
      case "agent_thought_chunk": return this.chunk("thought", u as never, n);
      case "tool_call_update": return this.toolCall(u as never);
      case "tool_call_content_chunk": return this.toolContent(u as never);
      case "terminal_update": return this.terminalUpdate(u as never);
      case "terminal_output_chunk": return this.terminalOutput(u as never);
      case "plan_update": return this.plan(u as never);
      case "plan_removed": return this.planRemoved(u as never);
      case "notice": return this.notice(u as never);
      case "compaction_update": return this.compaction(u as never);
      case "compaction_summary_chunk": return this.compactionChunk(u as never);
      case "subagent_update": return this.subagent(u as never);
      case "state_update": return this.stateUpdate(u as never);
      case "usage_update": case "cursor_update": case "available_commands_update": case "config_option_update": case "session_info_update": case "prompt_suggestions_update": return this.general(u);
      case "replay_complete": return; // there is nothing to see
      default:
        this.push({ kind: "other", key: this.fresh(), name: u.sessionUpdate, update: u });
    }
  }

  // fresh returns the key of an entry that has no name: where it is in the session, so that it is the same one whenever
  // it is folded.
  private fresh(): string {
    const key = "#" + this.record;
    if (!this.by.has(key)) return key;
    for (let i = 1; ; i++) if (!this.by.has(`${key}-${i}`)) return `${key}-${i}`;
  }

  private push<E extends Entry>(made: New<E>): E {
    const e = { ...made, rev: signal(0), at: this.record, last: this.record, changes: 0 } as unknown as E;
    this.list.push(e);
    this.by.set(e.key, e);
    this.grown = true;
    return e;
  }

  private changed(e: Entry) {
    this.dirty.add(e);
    e.last = this.record;
    e.changes++;
  }

  // entry returns the entry of a key, or makes one.
  private entry<E extends Entry>(key: string, make: () => New<E>): E {
    const e = this.by.get(key);
    return e ? (e as E) : this.push(make());
  }

  private messageOf(role: Message["role"], id: string, n: UpdateSessionNotification): Message {
    const m = this.entry<Message>(`${role}:${id}`, () => ({
      kind: "message", key: `${role}:${id}`, role, author: authorOf(n) || (this.of ? "Task" : ""), content: [], skipped: 0, live: true,
    }));
    if (this.talking !== m) this.silence();
    this.talking = m;
    return m;
  }

  // silence says that nothing is added to the message that grew, until something is.
  private silence() {
    const m = this.talking;
    this.talking = null;
    if (!m?.live) return;
    m.live = false;
    this.changed(m);
  }

  private message(role: Message["role"], u: { messageId: string; content?: ContentBlock[] | null }, n: UpdateSessionNotification) {
    const m = this.messageOf(role, u.messageId, n);
    m.author ||= authorOf(n);
    if (u.content !== undefined) {
      m.content = joined(u.content ?? []);
      m.skipped = 0;
    }
    this.silence();
    this.changed(m);
  }

  private chunk(role: Message["role"], u: { messageId: string; content: ContentBlock }, n: UpdateSessionNotification) {
    const m = this.messageOf(role, u.messageId, n);
    m.author ||= authorOf(n);
    m.live = true;
    append(m.content, u.content);
    m.skipped += this.crop(m.content);
    this.changed(m);
  }

  private toolCall(u: ToolCallUpdate) {
    this.silence();
    const t = this.toolOf(u.toolCallId);
    const call = { ...t.call } as Record<string, unknown>;
    for (const [name, value] of Object.entries(u)) {
      if (name === "sessionUpdate" || value === undefined) continue;
      if (value === null) delete call[name];
      else if (name === "_meta") call[name] = { ...(call[name] as object | undefined), ...(value as object) }; // it patches by key
      else call[name] = value;
    }
    t.call = call as ToolCallUpdate;
    if (u.content !== undefined) t.skipped = 0;
    const d = decisionIn((u as { _meta?: Meta })._meta);
    if (d) t.decided = [...t.decided.filter((x) => x.ask === "" || x.ask !== d.ask), d].slice(-mostDecided);
    this.shows(t.call.content ?? []);
    this.changed(t);
  }

  private toolOf(id: string): Tool {
    return this.entry<Tool>("tool:" + id, () => ({ kind: "tool", key: "tool:" + id, call: { toolCallId: id }, decided: [], skipped: 0 }));
  }

  private toolContent(u: { toolCallId: string; content: ToolCallContent }) {
    this.silence();
    const t = this.toolOf(u.toolCallId);
    const content = (t.call.content ?? []).slice();
    const last = content.at(-1), next = u.content;
    if (last?.type === "content" && next.type === "content") {
      const blocks = [(last as { content: ContentBlock }).content];
      append(blocks, (next as { content: ContentBlock }).content);
      t.skipped += this.crop(blocks);
      content.splice(-1, 1, ...blocks.map((b) => ({ type: "content" as const, content: b }) as ToolCallContent));
    } else content.push(next);
    t.call = { ...t.call, content };
    this.shows([next]);
    this.changed(t);
  }

  // shows notes which terminals are part of a tool call.
  private shows(content: ToolCallContent[]) {
    for (const c of content) {
      if (c.type !== "terminal") continue;
      const t = this.terminalOf((c as { terminalId: string }).terminalId);
      if (!t.shown) {
        t.shown = true;
        this.changed(t);
      }
    }
  }

  private terminalOf(id: string): Terminal {
    return this.entry<Terminal>("terminal:" + id, () => ({
      kind: "terminal", key: "terminal:" + id, id, command: "", cwd: "", text: "", skipped: 0, exit: null, shown: false,
    }));
  }

  private terminalUpdate(u: { terminalId: string; command?: string | null; cwd?: string | null; output?: { data: string } | null; exitStatus?: TerminalExitStatus | null }) {
    const t = this.terminalOf(u.terminalId);
    if (u.command !== undefined) t.command = u.command ?? "";
    if (u.cwd !== undefined) t.cwd = u.cwd ?? "";
    if (u.exitStatus !== undefined) t.exit = u.exitStatus;
    if (u.output !== undefined) {
      t.text = "";
      t.skipped = 0;
      this.decoders.delete(t.id);
      if (u.output) this.output(t, u.output.data);
    }
    this.changed(t);
  }

  private terminalOutput(u: { terminalId: string; data: string }) {
    const t = this.terminalOf(u.terminalId);
    this.output(t, u.data);
    this.changed(t);
  }

  private output(t: Terminal, data: string) {
    let decoder = this.decoders.get(t.id);
    if (!decoder) this.decoders.set(t.id, (decoder = new TextDecoder()));
    t.text += decoder.decode(bytesOf(data, this.encoded), { stream: true });
    if (t.text.length <= maxTerminal) return;
    const cut = lineAt(t.text, t.text.length - 0.75 * maxTerminal);
    t.text = t.text.slice(cut);
    t.skipped += cut;
  }

  // crop bounds a list of blocks that grows, and returns how many characters are gone.
  private crop(list: ContentBlock[]): number {
    let size = 0, gone = 0;
    for (const b of list) size += b.type === "text" ? (b as { text: string }).text.length : 0;
    const blocks = list.length > maxBlocks;
    if (size <= (this.reader.away ? maxAway : maxText) && !blocks) return 0;
    if (!this.silent) this.reader.shifts();
    if (blocks) for (const b of list.splice(0, list.length - 0.75 * maxBlocks)) gone += b.type === "text" ? (b as { text: string }).text.length : 0;
    for (let i = 0; i < list.length && size - gone > 0.75 * maxText; i++) {
      if (list[i].type !== "text") continue;
      const { text } = list[i] as { text: string };
      const cut = Math.min(text.length, lineAt(text, size - gone - 0.75 * maxText));
      const begin = fence(text.slice(0, cut));
      list[i] = { ...list[i], text: begin + text.slice(cut) } as ContentBlock;
      gone += cut - begin.length;
    }
    return gone;
  }

  private plan(u: { plan: Plan["plan"] }) {
    this.silence();
    const key = "plan:" + text(u.plan.planId);
    const p = this.entry<Plan>(key, () => ({ kind: "plan", key, plan: u.plan, removed: false }));
    p.plan = u.plan;
    p.removed = false;
    this.changed(p);
  }

  private planRemoved(u: { planId: string }) {
    const p = this.by.get("plan:" + u.planId) as Plan | undefined;
    if (!p) return;
    p.removed = true;
    this.changed(p);
  }

  private notice(u: { severity?: string; title?: string; description?: string | null }) {
    this.push({ kind: "notice", key: this.fresh(), severity: text(u.severity), title: text(u.title), description: text(u.description) });
  }

  private compactionOf(id: string): Compaction {
    return this.entry<Compaction>("compaction:" + id, () => ({ kind: "compaction", key: "compaction:" + id, status: "", summary: [], skipped: 0, error: "" }));
  }

  private compaction(u: { compactionId: string; status?: string; summary?: ContentBlock[] | null; error?: string | null }) {
    this.silence();
    const c = this.compactionOf(u.compactionId);
    if (u.status !== undefined) c.status = text(u.status);
    if (u.summary !== undefined) {
      c.summary = joined(u.summary ?? []);
      c.skipped = 0;
    }
    if (u.error !== undefined) c.error = text(u.error);
    this.changed(c);
  }

  private compactionChunk(u: { compactionId: string; content: ContentBlock }) {
    const c = this.compactionOf(u.compactionId);
    append(c.summary, u.content);
    c.skipped += this.crop(c.summary);
    this.changed(c);
  }

  private subagent(u: { sessionId: string; title?: string | null; description?: string | null; state?: { state: string } | null }) {
    const s = this.subagentOf(u.sessionId);
    if (u.title !== undefined) s.title = text(u.title);
    if (u.description !== undefined) s.description = text(u.description);
    if (u.state !== undefined) s.state = text(u.state?.state);
    this.changed(s);
  }

  // subagentOf returns the entry of a subagent, which may be among what another subagent does.
  private subagentOf(session: string): Subagent {
    let s = this.subagents.get(session);
    if (!s) {
      s = this.push<Subagent>({ kind: "subagent", key: "subagent:" + session, title: "", description: "", state: "", fold: new Fold(this.reader, this.subagents, session) });
      this.subagents.set(session, s);
      this.later();
    }
    return s;
  }

  // A turn that has ended is shown with all that it said: the state is drawn at once, and entries with the next frame.
  private stateUpdate(u: StateUpdate) {
    if (u.state === "idle") {
      this.silence();
      const { stopReason, error } = u as { stopReason?: string | null; error?: { message?: string } | null };
      const { by, lost } = said((u as { _meta?: Meta })._meta);
      if (stopReason && stopReason !== "end_turn") this.push({ kind: "turn", key: this.fresh(), reason: stopReason, text: text(error?.message), by: text(by), lost: lost === true });
      if (!this.silent) this.flush();
    }
    this.general(u as SessionUpdate);
  }
}

// lineAt returns where the first line of a text begins that does so at a place or behind; that place, if it is far from there.
function lineAt(text: string, at: number): number {
  at = Math.floor(at);
  const line = text.indexOf("\n", at) + 1;
  if (line > 0 && line < at + 10_000) return line;
  return at + Number(/[\udc00-\udfff]/.test(text[at] ?? "")); // and not half a character
}

// fence returns the line that begins the code in which a Markdown text ends, so that what follows it is code still; "" if it
// does not end in code.
function fence(text: string): string {
  let open = "";
  for (const [line, mark] of text.matchAll(/^ {0,3}(`{3,}|~{3,}).*$/gm)) {
    if (open === "") open = line;
    else if (mark.startsWith(open.trim().match(/^[`~]+/)![0]) && line.trim() === mark) open = "";
  }
  return open && open.slice(0, 100) + "\n";
}

// same reports whether two entries of the same key are made of the same.
function same(a: Entry, b: Entry): boolean {
  if (a.at !== b.at || a.last !== b.last || a.changes !== b.changes) return false;
  switch (a.kind) {
    case "subagent": return false;
    case "message": return a.live === (b as Message).live;
    case "terminal": return a.shown === (b as Terminal).shown;
  }
  return true;
}

const roles: Record<string, string> = { user_message: "user", agent_message: "agent", agent_thought: "thought" };

// besideOf returns the key of the entry that a cursor is beside.
function besideOf(a: { type?: string; messageId?: string; toolCallId?: string }): string {
  if (a.type === "tool_call") return "tool:" + a.toolCallId;
  return Object.hasOwn(roles, a.type ?? "") ? `${roles[a.type!]}:${a.messageId}` : "";
}

const text = (v: unknown): string => (typeof v === "string" ? v : "");

// authorOf returns who has written a prompt, "" if the gateway does not say it.
export const authorOf = (n: UpdateSessionNotification): string => text(said(n._meta).author) || text(said((n.update as Pick<UpdateSessionNotification, "_meta">)._meta).author);

// append adds a block, which becomes part of the last one if both are text.
function append(list: ContentBlock[], next: ContentBlock) {
  const last = list.at(-1);
  if (last?.type === "text" && next.type === "text") {
    list[list.length - 1] = { ...last, text: (last as { text: string }).text + (next as { text: string }).text } as ContentBlock;
  } else list.push(next);
}

function joined(list: ContentBlock[]): ContentBlock[] {
  const all: ContentBlock[] = [];
  for (const b of list) append(all, b);
  return all;
}

// bytesOf decodes base64. What is not base64 is taken as it is.
function bytesOf(data: string, encoder: TextEncoder): Uint8Array {
  try {
    const raw = atob(data);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return bytes;
  } catch {
    return encoder.encode(data);
  }
}
