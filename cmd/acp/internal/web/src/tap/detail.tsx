// The frame that is chosen, with its answer or what it answers.

import { byId, type Child, el, say } from "./dom";
import { render } from "preact";
import { Json } from "../parts/Json";
import { at, size, took, seenCode } from "../parts/text";
import type { Store } from "./store";
import { label } from "./timeline";
import type { Finding, Row } from "./types";

const whole = new Map<number, string>(); // bodies that the server was asked for, by their rows
const kept = 8;

/** A Detail shows all of the frame that is chosen. */
export class Detail extends EventTarget {
  private node = byId("detail");
  private row: Row | undefined;
  private had = "";
  private trees: HTMLElement[] = []; // that Preact has drawn into

  constructor(private store: Store) {
    super();
    this.show(0);
  }

  show(seq: number): void {
    const row = this.store.row(seq);
    this.row = row;
    this.had = row ? known(row) : "";
    for (const tree of this.trees.splice(0)) render(null, tree);
    document.body.classList.toggle("detailed", !!row);
    if (!row) {
      this.node.replaceChildren(el("div.hint", null, "Choose a frame to see all of it: click one, or press ", el("kbd", null, "j"), " and ", el("kbd", null, "k"), "."));
      return;
    }
    const other = this.store.row(row.answer || row.asked || 0);
    this.node.replaceChildren(
      this.head(row),
      ...(row.marks || []).map((f) => finding(f)),
      this.body(row, row.marks),
      ...(other ? [this.other(row, other)] : row.type === "request" ? [el("p.note", null, "No answer so far.")] : []),
    );
    this.node.scrollTop = 0;
  }

  // refresh shows the frame again when more is known of it.
  refresh(): void {
    const row = this.row;
    if (row && this.had !== known(row)) {
      const top = this.node.scrollTop, focused = this.node.contains(document.activeElement);
      this.show(row.seq);
      this.node.scrollTop = top;
      if (focused) this.node.focus();
    }
  }

  private head(row: Row): HTMLElement {
    const facts: Child[] = [];
    const fact = (name: string, value: string) => facts.push(el("div", null, el("dt", null, name), el("dd", null, value)));
    if (row.dir) fact("from", row.dir === ">" ? "client → agent" : "agent → client");
    fact("at", at(row.at || 0));
    if (row.id && row.type !== "notification") fact("id", seenCode(row.id));
    if (row.session) fact("session", seenCode(row.session));
    if (row.took !== undefined) fact("answered after", took(row.took));
    if (row.size !== undefined) fact("size", size(row.size));
    return el("header.detail-head", null,
      el("button.back", {onclick: () => this.dispatchEvent(new Event("back")), "aria-label": "Back to the list"}, "‹"),
      el("h2", null, el("span.number", null, "#" + row.seq + " "), seenCode(row.update ? (row.method ?? "") + " " + row.update : label(row)), el("span.type", null, typeName(row))),
      row.body ? el("button", {onclick: () => void this.copy(), "aria-keyshortcuts": "c", title: "Copy the frame (c)"}, "Copy") : null,
      el("dl.facts", null, ...facts));
  }

  private body(row: Row, marks: Finding[] | undefined): HTMLElement {
    if (row.body === undefined) return el("p.said", null, seenCode(row.summary || "Nothing is told about it."));
    const text = whole.get(row.seq) ?? row.body;
    const partial = row.cut && !whole.has(row.seq);
    const isJSON = row.type !== "stderr" && row.type !== "text" && !partial && !row.short;
    const box = el("div.body", null, isJSON ? this.tree(text, (marks ?? []).flatMap((f) => (f.seq === row.seq && f.path ? [f.path] : []))) : el("pre.plain", null, seenCode(text)));
    if (partial) {
      box.prepend(el("p.note", null, "The first 64 kB of " + size(row.size ?? 0) + ". ", el("button", {onclick: (e) => void this.load(row, e.currentTarget as HTMLButtonElement)}, "Load all")));
    } else if (row.short) box.prepend(el("p.note", null, size(row.size ?? 0) + " passed; this much was recorded."));
    return box;
  }

  private other(row: Row, other: Row): HTMLElement {
    const title = row.answer ? "Answer" : "Request";
    return el("section.other" + (other.type === "error" ? ".bad" : ""), {"aria-label": title},
      el("header", null, el("h3", null, title + " ", el("span.number", null, "#" + other.seq)),
        row.answer ? el("span.fact", null, "after " + took(other.took ?? 0)) : null,
        el("button", {onclick: () => this.dispatchEvent(new CustomEvent("go", {detail: other.seq})), "aria-keyshortcuts": "a", title: "Go there (a)"}, "Go to it")),
      this.body(other, other.marks));
  }

  // tree returns the tree of a JSON text. marked are the members to point at.
  private tree(text: string, marked: string[]): HTMLElement {
    const node = el("div");
    render(<Json text={text} marked={marked} whole />, node);
    this.trees.push(node);
    return node;
  }

  private async load(row: Row, button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    try {
      const answer = await fetch("/frame?seq=" + row.seq);
      if (!answer.ok) throw new Error(answer.status === 404 ? "The server has forgotten it; the recording has it." : "The server answered " + answer.status + ".");
      whole.set(row.seq, await answer.text());
      if (whole.size > kept) whole.delete(whole.keys().next().value!);
      if (this.row?.seq === row.seq || this.row?.answer === row.seq || this.row?.asked === row.seq) this.show(this.row.seq);
    } catch (e) {
      button.replaceWith(e instanceof Error && !(e instanceof TypeError) ? e.message : "acp is gone; the recording has it.");
    }
  }

  async copy(): Promise<void> {
    const row = this.row;
    if (!row || row.body === undefined) return;
    try {
      await navigator.clipboard.writeText(whole.get(row.seq) ?? row.body);
      say(row.cut && !whole.has(row.seq) ? "Copied the first 64 kB" : "Copied");
    } catch {
      say("The browser does not let the page copy");
    }
  }
}

// known says what is known of a row that may change.
function known(row: Row): string {
  return row.answer + "/" + row.marks?.length;
}

function typeName(row: Row): string {
  switch (row.type) {
    case "error": return "error " + (row.code || "");
    case "stderr": return "a line of standard error";
    case "odd": return "JSON that is no message";
    case "text": return "a line that is not JSON";
    default: return row.type;
  }
}

// finding says what is wrong.
function finding(f: Finding): HTMLElement {
  return el("div.finding.level-" + word(f.level), null,
    el("div", null, el("span.badge", null, seenCode(f.level || "rule")), " ", el("b", null, seenCode(f.why || f.text || "")), where(f)),
    f.text && f.why ? el("p", null, seenCode(f.text)) : null,
    el("p.rule", null, seenCode(f.rule || "") + (f.cites ? " · " + seenCode(f.cites) : "")));
}

// where says at which member it is, unless the reason does.
export function where(f: Finding): HTMLElement | null {
  return f.path && !(f.why || "").startsWith(f.path) ? el("code", null, seenCode(f.path)) : null;
}

// word makes a class name of a level.
export function word(level: string | undefined): string {
  return level !== undefined && ["must", "should", "may", "quirk"].includes(level) ? level : "may";
}

