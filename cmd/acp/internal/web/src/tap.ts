// The page of a tap: what the parts tell each other, and the keys.

import { number, plural, size, seenCode } from "./parts/text";
import { byId, el, on, say, setText } from "./tap/dom";
import { Detail } from "./tap/detail";
import { Findings } from "./tap/findings";
import { everything, type Filter, Store } from "./tap/store";
import { Stream } from "./tap/stream";
import { Timeline } from "./tap/timeline";
import { Transcript } from "./tap/transcript";
import type { Hello, Row, SessionInfo } from "./tap/types";

// The token has done its part: the cookie is there now.
if (location.search) history.replaceState(null, "", "/");

const store = new Store();
const stream = new Stream();
const timeline = new Timeline(store);
const detail = new Detail(store);
const findings = new Findings(store);
const transcript = new Transcript();
const views = ["frames", "transcript", "findings"] as const;

type View = (typeof views)[number];

let view: View = "frames";
let hello: Hello | null = null;
let state = "connecting";
let told = { first: 1, lost: 0 };

// What the server tells.

on<{ hello: Hello; fresh: boolean }>(stream, "hello", ({ hello: h, fresh }) => {
  hello = h;
  store.limits = {rows: h.maxRows, bytes: 2 * h.maxBytes};
  if (fresh && store.count > 0) {
    const {filter} = store;
    store.clear();
    void store.refine(filter);
    detail.show(0);
  }
  if (fresh && h.recorded) timeline.follow(false); // it is read from its beginning
  const name = h.title || (h.command || []).join(" ") || "acp";
  setText(byId("title"), seenCode(name));
  byId("title").title = seenCode((h.command || []).join(" "));
  setText(byId("where"), h.file ? (h.recorded ? "" : "recording to ") + seenCode(h.file) : "");
  draw();
});
on<typeof told>(stream, "told", (t) => { told = t; draw(); });
on<Row[]>(stream, "rows", (rows) => store.add(rows));
on<SessionInfo[]>(stream, "sessions", (list) => {
  transcript.sessions(list);
  choices(byId<HTMLSelectElement>("session"), "all sessions", list.map((s) => [s.id, s.title || s.id]));
  draw();
});
on<() => void>(stream, "bye", (gone) => void transcript.all().then(gone));
on<{ state: string }>(stream, "state", ({ state: s }) => {
  if (state === s) return;
  state = s;
  say(stateName());
  draw();
});

const states: Record<string, string> = {
  connecting: "connecting", live: "live", recorded: "reading", ended: "ended", gone: "ended · acp is gone",
  lost: "no connection, trying again", full: "too many pages are open, trying again", refused: "open the address that acp printed",
};

function stateName(): string {
  if (state === "ended" && hello?.recorded) return "all read";
  return store.paused && state === "live" ? "paused" : states[state] ?? state;
}

// What changes in the store is drawn at most once a frame.

let due = 0;

function draw(): void {
  due ||= requestAnimationFrame(() => {
    due = 0;
    const name = stateName();
    setText(byId("state-text"), name);
    byId("state").dataset.state = store.paused && state === "live" ? "paused" : state;
    setText(byId("count-frames"), number(store.count));
    setText(byId("count-sessions"), transcript.list.length ? number(transcript.list.length) : "");
    setText(byId("count-findings"), store.findings.length ? number(store.findings.length) : "");
    byId("count-findings").className = "count" + (store.findings.some((f) => f.level === "must") ? " bad" : "");
    document.title = (store.findings.length ? "⚠ " : "") + byId("title").textContent + " · acp";
    setText(byId("shown"), store.filtered ? number(store.shown) + " of " + plural(store.count, "record") : plural(store.count, "record") + ", " + size(Math.round(store.bytes / 2)));
    const first = Math.max(told.first, store.first);
    const notes: string[] = [];
    setText(byId("secrets"), hello?.redacted ? "secrets are replaced" : "");
    if (first > 1 && store.count) notes.push("The first " + number(first - 1) + " are not kept here" + (hello?.file ? "; the file has all" : ""));
    if (told.lost) notes.push(plural(told.lost, "record") + " came too fast to be shown" + (hello?.file ? "; the file has all" : ""));
    setText(byId("notes"), notes.join(" · "));
    byId("pause").setAttribute("aria-pressed", String(store.paused));
    byId("follow").setAttribute("aria-pressed", String(timeline.following));
    byId("clear").hidden = !store.filtered;
    emptiness();
    choices(byId<HTMLSelectElement>("method"), "all methods", [...store.methods.keys()].sort().map((m) => [m, m + " (" + number(store.methods.get(m) ?? 0) + ")"]));
    findings.show();
    detail.refresh();
  });
}

function emptiness(): void {
  const node = byId("empty");
  node.hidden = store.shown > 0;
  if (store.shown > 0) return;
  const lines: [string, string] = store.count > 0 && store.filtered
    ? ["Nothing matches", "No frame passes the filters. Press x to show everything."]
    : state === "refused" ? ["Not allowed", "Open the address that acp printed, with its token."]
    : state === "ended" || state === "gone" ? ["Nothing was said", "The connection ended without a frame."]
    : ["Nothing yet", "Frames appear here as soon as the client and the agent talk."];
  const mark = lines.join();
  if (node.dataset.mark === mark) return;
  node.dataset.mark = mark;
  node.replaceChildren(el("h2", null, lines[0]), el("p", null, lines[1]));
}

// choices writes the options of a selection, if there are others now.
function choices(select: HTMLSelectElement, all: string, list: [string, string][]): void {
  list = list.slice(0, 500);
  const mark = JSON.stringify(list);
  if (select.dataset.mark === mark || document.activeElement === select) return;
  select.dataset.mark = mark;
  const value = select.value;
  select.replaceChildren(el("option", {value: ""}, all), ...list.map(([v, name]) => el("option", {value: v}, seenCode(name).slice(0, 80))));
  if (value && !list.some(([v]) => v === value)) select.append(el("option", {value}, seenCode(value)));
  select.value = value;
}

store.addEventListener("change", draw);

// Filters.

let typing = 0;

const search = byId<HTMLInputElement>("search");
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = window.setTimeout(() => void refine({text: search.value}), 120);
});
for (const name of ["method", "session"] as const) {
  const select = byId<HTMLSelectElement>(name);
  select.addEventListener("change", () => void refine({[name]: select.value}));
}
for (const chip of document.querySelectorAll<HTMLElement>(".chip")) {
  chip.addEventListener("click", () => {
    const pressed = chip.getAttribute("aria-pressed") !== "true";
    chip.setAttribute("aria-pressed", String(pressed));
    const {filter, value = ""} = chip.dataset;
    if (filter === "only") void refine({[value]: pressed});
    else if (filter === "dir" || filter === "kind") {
      const set = new Set(store.filter[filter]);
      if (pressed) set.add(value);
      else set.delete(value);
      void refine({[filter]: set});
    }
  });
}
byId("clear").addEventListener("click", clear);

async function refine(change: Partial<Filter>): Promise<void> {
  await store.refine(change);
  say(store.filtered ? number(store.shown) + " of " + plural(store.count, "record") : "Everything is shown");
}

// find looks for a text at once, and goes to what is found.
async function find(text: string): Promise<void> {
  byId("grid").focus();
  clearTimeout(typing);
  if (store.filter.text !== text || store.searching) await refine({text});
  timeline.follow(false); // who has looked for something stays there
  if (!timeline.selected || store.at(store.indexOf(timeline.selected)) !== timeline.selected) timeline.toFirst();
}

function clear(): void {
  clearTimeout(typing);
  search.value = byId<HTMLSelectElement>("method").value = byId<HTMLSelectElement>("session").value = "";
  for (const chip of document.querySelectorAll<HTMLElement>(".chip")) chip.setAttribute("aria-pressed", String(chip.dataset.filter !== "only"));
  void refine(everything());
  if (document.activeElement === document.body || document.activeElement === byId("clear")) byId("grid").focus();
}

// Buttons.

const keys = byId<HTMLDialogElement>("keys");

byId("pause").addEventListener("click", pause);
byId("follow").addEventListener("click", follow);
byId("help").addEventListener("click", () => keys.showModal());
timeline.addEventListener("follow", draw);
timeline.addEventListener("select", () => detail.show(timeline.selected));
timeline.addEventListener("open", () => byId("detail").focus());
timeline.addEventListener("resume", pause);
detail.addEventListener("back", back);
on<number>(detail, "go", (seq) => void go(seq));
on<number>(findings, "go", (seq) => { void go(seq); byId("grid").focus(); });

function pause(): void {
  store.pause(!store.paused);
  say(store.paused ? "Paused" : "Goes on");
}

function follow(): void {
  timeline.follow(!timeline.following);
  say(timeline.following ? "Follows" : "Stays");
}

function back(): void {
  byId("grid").focus();
  if (narrow.matches) timeline.select(0);
}

const narrow = matchMedia("(max-width: 760px)");

// go shows a row, even if the filters do not let it through.
async function go(seq: number): Promise<void> {
  const row = store.row(seq);
  if (!row) return;
  show("frames");
  if (!store.passes(row)) clear();
  if (store.searching) await new Promise((done) => store.addEventListener("change", done, {once: true}));
  timeline.select(seq, {middle: true});
}

// show changes the view.
function show(name: View): void {
  view = name;
  for (const v of views) {
    byId(v).hidden = v !== name;
    const tab = byId("tab-" + v);
    tab.setAttribute("aria-selected", String(v === name));
    tab.tabIndex = v === name ? 0 : -1;
  }
  document.body.dataset.view = name;
  if (name === "transcript") transcript.later();
  if (name === "findings") findings.show();
  timeline.list.later();
}

views.forEach((v, i) => {
  const tab = byId("tab-" + v);
  tab.addEventListener("click", () => show(v));
  tab.addEventListener("keydown", (e) => {
    const steps: Record<string, number> = {ArrowRight: i + 1, ArrowLeft: i + views.length - 1, Home: 0, End: views.length - 1};
    const to = views[(steps[e.key] ?? NaN) % views.length];
    if (to === undefined) return;
    e.preventDefault();
    show(to);
    byId("tab-" + to).focus();
  });
});

// The divider.

const divider = byId("divider");

function divide(percent: number): void {
  percent = Math.round(Math.max(20, Math.min(80, percent)));
  divider.setAttribute("aria-valuenow", String(percent));
  document.querySelector<HTMLElement>(".split")!.style.setProperty("--detail", percent + "%");
}
divider.addEventListener("pointerdown", (e) => {
  divider.setPointerCapture(e.pointerId);
  e.preventDefault();
});
divider.addEventListener("pointermove", (e) => {
  if (divider.hasPointerCapture(e.pointerId)) divide(100 - 100 * e.clientX / innerWidth);
});
divider.addEventListener("keydown", (e) => {
  const by = e.key === "ArrowLeft" ? 4 : e.key === "ArrowRight" ? -4 : 0;
  if (by === 0) return;
  e.preventDefault();
  divide(Number(divider.getAttribute("aria-valuenow")) + by);
});

// Keys.

const everywhere: Record<string, () => void> = {
  "/": () => { show("frames"); search.focus(); search.select(); },
  "?": () => keys.showModal(),
  f: () => follow(),
  p: () => pause(),
  x: () => clear(),
  1: () => { show("frames"); byId("grid").focus(); },
  2: () => { show("transcript"); (byId("transcript").querySelector<HTMLElement>(".conversation") ?? byId("tab-transcript")).focus(); },
  3: () => { show("findings"); (byId("findings").querySelector("button") || byId("tab-findings")).focus(); },
};

const inFrames: Record<string, () => void> = {
  j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
  g: () => { grid(); timeline.toFirst(); }, Home: () => { grid(); timeline.toFirst(); },
  G: () => { grid(); timeline.toLast(); }, End: () => { grid(); timeline.toLast(); },
  PageDown: () => move(timeline.list.page), PageUp: () => move(-timeline.list.page),
  a: () => { const row = store.row(timeline.selected); if (row) void go(row.answer || row.asked || 0); },
  c: () => void detail.copy(),
  n: () => violation(1), N: () => violation(-1),
};

function grid(): void {
  if (!byId("detail").contains(document.activeElement)) byId("grid").focus();
}

function move(by: number): void {
  grid();
  timeline.move(by);
}

// violation goes to the next row with a finding.
function violation(step: number): void {
  for (let seq = (timeline.selected || (step > 0 ? store.first - 1 : store.last + 1)) + step; store.row(seq); seq += step) {
    if (store.row(seq)?.marks) return void go(seq);
  }
  say(step > 0 ? "No more violations below" : "No more violations above");
}

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || keys.open) return;
  const at = e.target as HTMLElement;
  if (at.matches("input, select, textarea")) {
    if (e.key === "Escape") {
      if (at === search && search.value) {
        search.value = "";
        void refine({text: ""});
      }
      byId("grid").focus();
      e.preventDefault();
    } else if (e.key === "Enter" && at === search) {
      void find(search.value);
      e.preventDefault();
    }
    return;
  }
  if (e.key === "Escape") {
    if (view !== "frames") {
      show("frames");
      byId("grid").focus();
    } else if (byId("detail").contains(at)) back();
    else if (timeline.selected) timeline.select(0);
    return;
  }
  if (e.key === "Enter" && at === byId("grid")) {
    if (!timeline.selected) timeline.move(1);
    byId("detail").focus();
    e.preventDefault();
    return;
  }
  // Arrows and the like scroll where they can.
  const scrolls = /^(Arrow|Page|Home|End)/.test(e.key);
  const action = everywhere[e.key] ?? (view === "frames" && !(scrolls && at !== byId("grid") && at !== document.body) ? inFrames[e.key] : undefined);
  if (!action) return;
  e.preventDefault();
  action();
});

show("frames");
byId("grid").focus();
draw();
stream.open();

// Tests show conversations in one of their own.
export { Transcript };
