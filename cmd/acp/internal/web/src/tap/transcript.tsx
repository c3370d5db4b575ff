// The conversations: which are there, and what the server has said of them.

import { render } from "preact";
import { byId } from "./dom";
import type { Entry, SessionInfo, Talk } from "./types";
import { Conversations, type Item } from "./Conversations";

const pace = 500; // ms between fetches of a conversation that goes on

/** A Transcript fetches the conversations as they change, and shows the one that is chosen. */
export class Transcript {
  private node = byId("transcript");
  list: SessionInfo[] = [];
  private have = new Map<string, Talk>(); // answers of the server, by session
  private chosen = "";
  private items: Item[] = []; // of the conversation that was drawn last
  private drawn = ""; // its session
  private timer = 0;
  private busy = false;
  private gone = false; // the server
  private fetched = 0;

  /** sessions takes the list of sessions. */
  sessions(list: SessionInfo[]): void {
    this.list = list;
    if (!list.some((s) => s.id === this.chosen)) this.chosen = list.at(-1)?.id ?? "";
    this.later();
  }

  private choose(id: string): void {
    this.chosen = id;
    this.show();
    this.later();
  }

  /** later fetches what is shown, at once or when the last time is long enough ago. */
  later(): void {
    if (this.node.hidden) return;
    this.show();
    if (this.timer || this.busy) return;
    const wait = Math.max(0, this.fetched + pace - performance.now());
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      void this.fetch(this.chosen);
    }, wait);
  }

  // fetch gets the conversation of a session if it has changed.
  private async fetch(id: string): Promise<void> {
    const known = this.list.find((s) => s.id === id);
    if (!known || (this.have.get(id)?.changes ?? -1) >= known.changes) return;
    this.busy = true;
    try {
      const answer = await fetch("/session?id=" + encodeURIComponent(id));
      this.fetched = performance.now();
      if (answer.ok) this.have.set(id, (await answer.json()) as Talk);
      else this.have.set(id, { changes: known.changes, transcript: {}, failed: answer.status });
    } catch {
      this.gone = true;
    }
    this.busy = false;
    this.show();
    if (!this.gone && this.list.some((s) => s.id === this.chosen && s.changes > (this.have.get(this.chosen)?.changes ?? -1))) this.later();
  }

  /** all fetches every conversation, before the server goes. */
  async all(): Promise<void> {
    for (const s of this.list.slice().reverse()) if (!this.gone) await this.fetch(s.id);
  }

  private show(): void {
    if (this.node.hidden) return;
    const talk = this.have.get(this.chosen);
    const main = this.node.querySelector(".conversation");
    const isFresh = this.drawn !== this.chosen || this.items.length === 0;
    const atEnd = isFresh || !main || main.scrollTop + main.clientHeight >= main.scrollHeight - 30;
    this.items = items(talk?.transcript.entries ?? [], isFresh ? [] : this.items);
    this.drawn = this.chosen;
    render(<Conversations sessions={this.list} chosen={this.chosen} choose={(id) => this.choose(id)} talk={talk} items={this.items} gone={this.gone} />, this.node);
    const now = this.node.querySelector(".conversation");
    if (now && atEnd) now.scrollTop = now.scrollHeight;
  }
}

// items returns the entries to draw: the same as before where nothing is different, so that they are not drawn again.
function items(entries: Entry[], before: Item[]): Item[] {
  const terminals = new Map(entries.flatMap((e) => (e.kind === "terminal" ? [[e.update?.terminalId ?? "", e] as const] : [])));
  return entries.map((entry, i) => {
    const inside = new Map<string, Entry>();
    if (entry.kind === "tool_call") {
      for (const c of (entry.update?.content ?? []) as { type?: string; terminalId?: string }[]) {
        const id = c?.type === "terminal" ? (c.terminalId ?? "") : "";
        const terminal = terminals.get(id);
        if (terminal) inside.set(id, terminal);
      }
    }
    const mark = JSON.stringify([entry, ...inside.values()]);
    const old = before[i];
    return old?.mark === mark ? old : { entry, terminals: inside, mark };
  });
}
