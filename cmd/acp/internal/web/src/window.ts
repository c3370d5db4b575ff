// The part of a session that a page has: a window over the log of the gateway, around what somebody reads. What is far away
// is dropped, on both sides, and fetched again when it is looked at. What comes meanwhile is kept as far as the window is to
// reach it.
//
// A window has 6,000 updates, unless it is all of one entry, such as the output of a command that runs for hours: then it has
// up to 20,000, and is cut inside of that. It has about 32 million characters at most.

import type { UpdateSessionNotification } from "@agentclientprotocol/sdk/experimental/v2";
import { positionIn } from "./meta";

const most = 6000; // updates of a window
const slack = 500; // by which it may have more, so that it is not cut with each one
const longest = 20_000; // updates of one that is all of the same entry, which is not cut otherwise
const latest = 1000; // updates of the end of the session that are kept while the window is elsewhere
const heaviest = 32 << 20; // characters of a window, as JSON, about; a page of the history has an eighth of it at most

// A View is what is in view: the records in which its entries begin and end, and about which ones of these are seen, as an
// entry may be longer than a window.
export interface View {
  first: number;
  last: number;
  from: number;
  to: number;
}

// recordOf returns the record that an update is about, or that it follows; undefined if it is at no place of the log, as what
// the gateway says of the session as a whole.
export function recordOf(n: UpdateSessionNotification): number | undefined {
  const at = positionIn(n._meta);
  return at && at.cursor + (at.part ? 1 : 0);
}

export class Window {
  items: UpdateSessionNotification[] = [];
  from = 0; // the record before the first one
  to: number | null = null; // the last record, unless the window has the end of the session
  private end: UpdateSessionNotification[] = []; // the end of the session, if the window does not have it
  private endFrom = 0; // the record before the first one of that
  private heads: UpdateSessionNotification[] = []; // what is known of entries that began before the first one and go on
  private weight = 0; // characters of the updates at most, and of those that were dropped since it was counted
  private endWeight = 0;
  private tried = 0; // how many updates there were when nothing could be dropped

  // all returns what is to be shown.
  get all(): UpdateSessionNotification[] {
    return this.heads.length > 0 ? [...this.heads, ...this.items] : this.items;
  }

  // tail returns the end of the session, as far as it is here.
  get tail(): UpdateSessionNotification[] {
    return this.to === null ? this.items : this.end;
  }

  // add takes what comes next in the session. It reports whether that is in the window.
  add(n: UpdateSessionNotification): boolean {
    this.tail.push(n);
    if (this.to === null) {
      this.weight += weigh(n);
      return true;
    }
    this.endWeight += weigh(n);
    if (this.end.length > 2 * latest || this.endWeight > heaviest) this.end = this.cutEnd(this.end);
    return false;
  }

  // cutEnd returns the latest of the updates that end the session.
  private cutEnd(list: UpdateSessionNotification[]): UpdateSessionNotification[] {
    this.endWeight = total(list);
    const keep = Math.min(latest, Math.ceil(list.length * share(this.endWeight)));
    const cut = seam(list, list.length - keep, list.length, 1) || seam(list, list.length - keep, 0, -1);
    this.endWeight = 0; // if it cannot be cut, it is tried again when as much has come
    if (cut <= 0) return list;
    this.endFrom = recordOf(list[cut - 1])!;
    const end = list.slice(cut);
    this.endWeight = total(end);
    return end;
  }

  // older puts what was fetched before the first update, newer after the last one. What is behind upTo has not come yet, and
  // will.
  older(found: UpdateSessionNotification[], from: number) {
    this.items = [...found, ...this.items];
    this.from = from;
    this.weight += total(found);
    const began = new Set(found.filter(isFirst).map(nameOf));
    this.heads = from === 0 ? [] : this.heads.filter((n) => !began.has(nameOf(n)));
  }

  newer(found: UpdateSessionNotification[], to: number, upTo: number) {
    this.items = [...this.items, ...found.filter((n) => recordOf(n)! <= upTo)];
    this.weight += total(found);
    this.to = Math.min(to, upTo);
    this.meet();
  }

  // move puts the window elsewhere.
  move(found: UpdateSessionNotification[], from: number, to: number, upTo: number) {
    if (this.to === null) {
      this.endFrom = this.from;
      this.end = this.cutEnd(this.items);
    }
    this.items = [];
    this.heads = [];
    this.weight = 0;
    this.from = from;
    this.newer(found, to, upTo);
  }

  // meet makes a window that has come to the end of the session one that has it.
  private meet() {
    if (this.to === null || this.to < this.endFrom) return;
    const to = this.to;
    this.items = [...this.items, ...this.end.filter((n) => (recordOf(n) ?? 0) > to)];
    this.weight = total(this.items);
    this.to = null;
    this.end = [];
  }

  // toEnd moves the window to the end of the session.
  toEnd() {
    if (this.to === null) return;
    this.items = this.end;
    this.heads = [];
    this.weight = total(this.items);
    this.from = this.endFrom;
    this.to = null;
    this.end = [];
  }

  // lacks notes that the end of the session, which is sent anew, does not follow what was here. A window that is elsewhere
  // stays there. It reports whether it does.
  lacks(from: number): boolean {
    if (this.to === null) return false;
    this.end = [];
    this.endWeight = 0;
    this.endFrom = from;
    return true;
  }

  // drop removes updates that are not in the log.
  drop(is: (n: UpdateSessionNotification) => boolean) {
    this.items = this.items.filter((n) => !is(n));
    this.end = this.end.filter((n) => !is(n));
  }

  // trim drops what is far from the view, or from the end of the session if view is null. It reports whether there was
  // anything to drop. Entries stay whole unless they are too long.
  trim(view: View | null): boolean {
    const n = this.items.length, heavy = this.weight > heaviest && (this.weight = total(this.items)) > heaviest;
    if (n <= Math.max(most, this.tried) + slack && !heavy) return false;
    this.tried = n;
    const hard = n > longest || heavy;
    const room = heavy ? Math.min(most, Math.ceil(n * share(this.weight))) : most;
    if (heavy) this.weight = 0; // if nothing can be dropped, it is tried again when as much has come
    const reach = (r: number) => { // where the updates begin that follow a record
      const i = this.items.findIndex((x) => (recordOf(x) ?? 0) > r);
      return i < 0 ? n : i;
    };
    const a = view ? reach((hard ? view.from : view.first) - 1) : n - 1, b = view ? Math.max(a, reach(hard ? view.to : view.last)) : n;
    const target = Math.max(0, Math.min(Math.floor((a + b - room) / 2), n - room));
    const lo = target === 0 ? 0 : seam(this.items, target, a, 1, true) || (hard ? seam(this.items, target, a, 1) : 0);
    const hi = lo + room >= n ? 0 : seam(this.items, target + room, b, -1, true) || (hard ? seam(this.items, target + room, b, -1) : 0);
    if (lo === 0 && hi === 0) return false;
    this.tried = 0;
    if (hi > 0) {
      if (this.to === null) {
        this.endFrom = recordOf(this.items[hi - 1])!;
        const rest = this.items.slice(hi);
        this.endWeight = total(rest);
        this.end = rest.length > latest ? this.cutEnd(rest) : rest;
      }
      this.to = recordOf(this.items[hi - 1])!;
      this.items = this.items.slice(0, hi);
    }
    if (lo > 0) {
      this.from = recordOf(this.items[lo - 1])!;
      const gone = [...this.heads, ...this.items.slice(0, lo)];
      this.items = this.items.slice(lo);
      this.heads = headsOf(gone, this.items);
    }
    this.weight = total(this.items);
    return true;
  }
}

const weigh = (n: UpdateSessionNotification): number => JSON.stringify(n.update).length;

const total = (list: UpdateSessionNotification[]): number => list.reduce((sum, n) => sum + weigh(n), 0);

// share returns how much of what is too heavy may stay.
const share = (weight: number): number => Math.min(1, heaviest / 2 / Math.max(1, weight));

// isHead reports whether an update says what an entry is that goes on for long: a tool call, a command or a subagent.
const isHead = ({ update: u }: UpdateSessionNotification): boolean => u.sessionUpdate === "tool_call_update" || u.sessionUpdate === "terminal_update" || u.sessionUpdate === "subagent_update";

// isFirst reports whether an entry of these begins with an update, as far as that can be told.
const isFirst = (n: UpdateSessionNotification): boolean => isHead(n) && ["title", "command"].some((name) => name in n.update);

// nameOf returns the name of the entry that an update is about.
function nameOf({ update, sessionId }: UpdateSessionNotification): string {
  const u = update as { sessionUpdate: string; toolCallId?: string; terminalId?: string; sessionId?: string };
  if (u.sessionUpdate === "subagent_update") return "subagent:" + u.sessionId;
  return sessionId + (u.toolCallId !== undefined ? " tool:" + u.toolCallId : u.terminalId !== undefined ? " terminal:" + u.terminalId : "");
}

// headsOf returns, for each entry that began in updates that are gone and goes on in others, one update that says what they
// said of it: what it is called is shown though its beginning is not here. Its output is not part of that.
function headsOf(gone: UpdateSessionNotification[], rest: UpdateSessionNotification[]): UpdateSessionNotification[] {
  const heads = new Map<string, UpdateSessionNotification>();
  for (const n of gone) {
    if (!isHead(n)) continue;
    const name = nameOf(n), before = heads.get(name);
    const update = { ...before?.update, ...n.update } as UpdateSessionNotification["update"] & { output?: unknown };
    delete update.output;
    heads.set(name, { ...(before ?? n), update });
  }
  const on = new Set(rest.flatMap((n) => [nameOf(n), "subagent:" + n.sessionId]));
  for (const [name, n] of [...heads].reverse()) { // a tool call goes on as long as one of its commands does
    const content = (n.update as { content?: { type: string; terminalId?: string }[] | null }).content;
    if (content?.some((c) => c.type === "terminal" && on.has(nameOf({ ...n, update: c as never })))) on.add(name);
  }
  return [...heads].flatMap(([name, n]) => (on.has(name) ? [n] : []));
}

// seam returns where a list can be cut, from one place to another: between two records and, if it is to be whole, not inside
// of a message. It is 0 if there is no such place.
function seam(list: UpdateSessionNotification[], at: number, until: number, step: 1 | -1, whole = false): number {
  for (let i = at; step > 0 ? i <= until : i >= until; i += step) {
    if (i <= 0 || i >= list.length) continue;
    const before = recordOf(list[i - 1]), next = recordOf(list[i]);
    if (before !== undefined && next !== undefined && before < next && (!whole || begins(list[i - 1], list[i]))) return i;
  }
  return 0;
}

// begins reports whether something begins with an update: a message, a tool call, or what is shown by itself.
function begins(before: UpdateSessionNotification, n: UpdateSessionNotification): boolean {
  if (n.sessionId !== before.sessionId) return true;
  const u = n.update as { sessionUpdate: string; messageId?: string; title?: string };
  if (u.messageId !== undefined) return u.messageId !== (before.update as { messageId?: string }).messageId;
  return u.title !== undefined || !u.sessionUpdate.startsWith("tool_call") && !u.sessionUpdate.startsWith("terminal");
}
