import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "../conversation";
import type { Cursor, Entry } from "../fold";
import { longest } from "../parts/Markdown";
import { prose, since } from "../parts/text";
import { EntryView } from "./Entries";
import { mark, marked, type Mark } from "./mark";
import { Sendings } from "./Sendings";

const near = 80; // px from the end at which what comes stays in view
const ahead = 1500; // px from the beginning or the end of what is drawn at which more is
const intent = 1000; // ms after a key, a wheel or a finger in which a view that moves is one that is scrolled
const settling = 2000; // ms after something was drawn in which what is around the view may get another size
const step = 150; // entries that are drawn in addition
const most = 600; // entries that are drawn

// A Place is where somebody reads: an entry, the record that it begins with, and how far its top is below that of the view.
interface Place {
  id: string;
  entry: string;
  at: number;
  offset: number;
}

const placeKey = "acp-place";

// kept returns the place in a session that was shown before the page was loaded again.
function kept(id: string): Place | null {
  try {
    const p = JSON.parse(sessionStorage.getItem(placeKey) ?? "null") as Place | null;
    return p && p.id === id && typeof p.entry === "string" && typeof p.at === "number" && typeof p.offset === "number" ? p : null;
  } catch {
    return null; // it is of something else
  }
}

// headOf says what an entry begins with.
function headOf(talk: Conversation, key: string): string {
  const e = talk.fold.value.entries.value.find((e) => e.key === key);
  return e ? e.at + " " + ("skipped" in e ? e.skipped : 0) : "";
}

// recordIn returns the record of what is a part of the way down in an entry, as far as that can be told: what is drawn of a
// text is its beginning, and what is kept of it the end.
function recordIn(e: Entry, way: number): number {
  let part = Math.max(0, Math.min(1, way));
  if (e.kind === "message") {
    const size = e.content.reduce((n, b) => n + (b.type === "text" ? (b as { text: string }).text.length : 0), 0);
    part = (e.skipped + part * Math.min(size, longest)) / Math.max(1, e.skipped + size);
  }
  return e.at + Math.floor(part * (e.last - e.at));
}

// Scroll has the entries of the window that the conversation has, of which it draws those around what is in view. It stays at
// the end while things are added, unless somebody has scrolled away. A page that is loaded again shows what it showed before.
export function Scroll({ talk }: { talk: Conversation }) {
  const box = useRef<HTMLDivElement>(null), inner = useRef<HTMLDivElement>(null);
  const stays = useRef(true); // at the end
  const anchor = useRef<Place | null>(null); // what is to stay where it is
  const shifted = useRef<{ mark: Mark; entry: string; head: string } | null>(null); // what was read there when it was about to begin with something else
  const height = useRef(0); // of everything, when the view last moved
  const drawn = useRef(0); // when something was drawn around the view
  const [before] = useState(() => kept(talk.id));
  const back = useRef(before); // where a page that was loaded again is to be
  const fetched = useRef(false); // for that
  const meant = useRef(0); // when somebody last did something that scrolls
  const [away, setAway] = useState(false);
  const [range, setRange] = useState<{ from: string; to: string } | null>(null); // of entries, by their keys; null is the end
  const entries = talk.fold.value.entries.value;
  const index = (key: string) => entries.findIndex((e) => e.key === key);

  let lo = Math.max(0, entries.length - 2 * step), hi = entries.length;
  if (range) {
    const a = index(range.from), b = range.to === "" ? entries.length : index(range.to) + 1;
    if (a >= 0) {
      lo = a;
      hi = Math.min(b > a ? b : entries.length, a + 3 * most);
    } else if (b > 0) { // what is far above has been dropped
      lo = Math.max(0, b - most);
      hi = b;
    }
  }
  const whole = hi === entries.length && !talk.later.value; // the end of the session is drawn

  const moves = () => performance.now() - meant.current < intent; // somebody scrolls
  const settles = () => performance.now() - drawn.current < settling;

  const nodes = () => [...inner.current!.querySelectorAll<HTMLElement>(":scope > [data-entry]")];

  // place returns the first entry that is in view, and has what is around the view stay.
  const place = (): Place | null => {
    const { top, bottom } = box.current!.getBoundingClientRect();
    let first: { entry: Entry; offset: number } | null = null, last = 0, from = 0, to = 0;
    const shown = entries.slice(lo, hi);
    for (const node of nodes()) {
      const at = node.getBoundingClientRect(), entry = at.bottom > top ? shown.find((e) => e.key === node.dataset.entry) : undefined;
      if (!entry) continue;
      if (entry.kind === "terminal" && entry.shown) continue; // it is drawn in a tool call
      if (first && at.top >= bottom) break;
      if (!first) {
        first = { entry, offset: at.top - top };
        from = recordIn(entry, (top - at.top) / at.height);
      }
      last = Math.max(last, entry.last);
      to = Math.max(to, recordIn(entry, (bottom - at.top) / at.height));
    }
    if (!first) return null;
    talk.look({ first: first.entry.at, last, from, to });
    return { id: talk.id, entry: first.entry.key, at: first.entry.at, offset: first.offset };
  };

  const nodeOf = (key: string) => inner.current?.querySelector<HTMLElement>(`:scope > [data-entry="${CSS.escape(key)}"]`);

  // put moves what is in view so that an entry is at its place, if it is drawn. If it begins with something else than before,
  // it is what was read of it that is at its place.
  const put = (p: Place) => {
    const b = box.current!, node = nodeOf(p.entry), s = shifted.current;
    if (!node) return;
    const { top } = b.getBoundingClientRect();
    if (s?.entry === p.entry && s.head !== headOf(talk, p.entry)) {
      shifted.current = null;
      b.scrollTop += marked(node, s.mark) - top - s.mark.offset;
      p.offset = node.getBoundingClientRect().top - top;
    } else b.scrollTop += node.getBoundingClientRect().top - top - p.offset;
  };

  // What an entry begins with is about to change.
  useEffect(() => {
    talk.shifts = () => {
      const key = anchor.current?.entry, node = key && !stays.current && nodeOf(key);
      shifted.current = node ? { entry: key, head: headOf(talk, key), mark: mark(node, box.current!.getBoundingClientRect().top) } : null;
    };
    return () => { talk.shifts = () => {}; };
  }, []);

  const toEnd = () => {
    back.current = null;
    stays.current = true;
    anchor.current = null;
    setAway(false);
    setRange(null);
    talk.toEnd();
    const b = box.current;
    if (b) b.scrollTop = b.scrollHeight;
    sessionStorage.removeItem(placeKey);
  };

  // draw draws other entries, and leaves what is in view where it is.
  const draw = (from: number, to: number) => {
    anchor.current = settles() && !moves() && anchor.current ? anchor.current : place();
    setRange({ from: entries[from].key, to: to >= entries.length && !talk.later.value ? "" : entries[to - 1].key });
  };

  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    if (stays.current && talk.later.value && !back.current) return toEnd(); // a window that is elsewhere has no end to stay at
    if (stays.current) {
      b.scrollTop = b.scrollHeight;
      return;
    }
    if (anchor.current) put(anchor.current);
    drawn.current = performance.now();
    fill(b.scrollHeight - b.scrollTop - b.clientHeight, false); // no event says so
  }, [entries, range]);

  // What grows without a new entry, such as a message or a picture that is loaded.
  useEffect(() => {
    const b = box.current, i = inner.current;
    if (!b || !i) return;
    const grown = new ResizeObserver(() => {
      if (stays.current) b.scrollTop = b.scrollHeight;
      else if ((settles() || shifted.current) && anchor.current) put(anchor.current);
    });
    grown.observe(i);
    grown.observe(b);
    return () => grown.disconnect();
  }, []);

  // Back to where somebody has read before the page was loaded again: what is kept is shown first, then what the gateway has.
  useEffect(() => {
    const wanted = back.current;
    if (!wanted || talk.loading.value) return;
    const i = index(wanted.entry);
    if (i < 0) {
      if (talk.old.value > 0 || talk.fetching.value) return;
      if (fetched.current || !wanted.at) toEnd();
      else void talk.around(wanted.at, () => back.current === wanted).then((is) => { if (!is) back.current = null; });
      fetched.current = true;
      return;
    }
    if (talk.old.value === 0) back.current = null;
    stays.current = false;
    setAway(true);
    anchor.current = wanted;
    const last = Math.min(i + step, entries.length);
    setRange({ from: entries[Math.max(0, i - step)].key, to: last >= entries.length ? "" : entries[last - 1].key });
  }, [talk.loading.value, talk.earlier.value, talk.fetching.value, talk.old.value, entries]);

  const scrolled = () => {
    const b = box.current;
    if (!b) return; // an event of what is not there any more
    const below = b.scrollHeight - b.scrollTop - b.clientHeight;
    const grew = b.scrollHeight !== height.current;
    height.current = b.scrollHeight;
    if (!stays.current && grew && settles() && !moves() && anchor.current) return put(anchor.current);
    // A view also moves when what is around it changes its size. Only somebody who scrolls goes away from the end.
    const atEnd = below < near && whole;
    if (atEnd || moves()) stays.current = atEnd;
    if (stays.current && !atEnd) {
      b.scrollTop = b.scrollHeight;
      return;
    }
    setAway(!stays.current);
    anchor.current = stays.current ? null : place();
    if (stays.current) {
      talk.look(null);
      setRange(null);
    }
    if (anchor.current) sessionStorage.setItem(placeKey, JSON.stringify(anchor.current));
    else if (!back.current) sessionStorage.removeItem(placeKey);
    fill(below, true);
  };

  // fill draws or fetches more where the view comes near the end of what is drawn. What is drawn on the other side and is far
  // away is not drawn any more. Unless somebody scrolls, nothing goes that would be drawn again at once.
  const fill = (below: number, scrolls: boolean) => {
    const b = box.current!, { top, bottom } = b.getBoundingClientRect();
    if (b.scrollTop < ahead && lo > 0) {
      const from = Math.max(0, lo - step), far = nodes().findIndex((n) => n.getBoundingClientRect().top > bottom + 2 * ahead);
      const to = Math.max(Math.min(hi, from + most), far < 0 ? hi : lo + far);
      if (to - from <= 3 * most) draw(from, to);
      else if (scrolls) draw(from, from + most);
    } else if (below < ahead && hi < entries.length) {
      const to = Math.min(entries.length, hi + step), near = nodes().findIndex((n) => n.getBoundingClientRect().bottom > top - 2 * ahead);
      const from = Math.min(Math.max(lo, to - most), near < 0 ? lo : lo + near);
      if (to - from <= 3 * most) draw(from, to);
      else if (scrolls) draw(to - most, to);
    } else if (b.scrollTop < ahead && talk.earlier.value) void talk.before();
    else if (below < ahead && talk.later.value) void talk.after();
    else if (!stays.current && range === null && entries.length > 0) draw(lo, hi); // what comes moves nothing any more
  };

  const means = () => {
    meant.current = performance.now();
    back.current = null;
  };
  // more shows what was before, or what comes next, to somebody who reads from there on.
  const more = (fetch: () => Promise<void>) => {
    means();
    stays.current = false;
    setAway(true);
    anchor.current = place();
    void fetch();
  };
  const drags = (e: PointerEvent) => { if (e.buttons > 0) means(); };

  const forks = talk.forks.value;
  const news = talk.news.value, many = news < 1000 ? news : "999+";
  return (
    <div class="scroll" ref={box} onScroll={scrolled} onWheel={means} onTouchMove={means} onKeyDown={means} onPointerDown={means} onPointerMove={drags} tabIndex={0} role="log" aria-live="off" aria-label="Conversation" aria-busy={talk.loading.value}>
      <div class="entries" ref={inner}>
        {talk.old.value > 0 && <p class="earlier">No connection. The conversation is shown as it was {when(talk.old.value)}.</p>}
        {talk.failed.value && <p class="bad" role="alert">{prose(talk.failed.value)}</p>}
        {lo === 0 && talk.earlier.value && <p class="earlier"><button onClick={() => more(() => talk.before())}>{talk.fetching.value ? "Loading …" : "Show what was before"}</button></p>}
        {entries.slice(lo, hi).map((e) => <div key={e.key} data-entry={e.key}><EntryView entry={e} terminals={talk.terminal} you={talk.you.value} /><ForkView at={forks.get(e.key)} talk={talk} /></div>)}
        {hi === entries.length && talk.later.value && <p class="earlier"><button onClick={() => more(() => talk.after())}>{talk.catching.value ? "Loading …" : "Show what comes next"}</button></p>}
        {whole ? <After talk={talk} /> : hi === entries.length && <Remarked talk={talk} />}
      </div>
      {away && <button id="latest" class="latest" onClick={toEnd} aria-label={news > 0 ? `Go to the end: ${many} new` : undefined}>{news > 0 ? `${many} new` : "Latest"} ↓</button>}
    </div>
  );
}

// ForkView forks the session beside an entry, if the agent does that there.
function ForkView({ at, talk }: { at: Cursor | undefined; talk: Conversation }) {
  if (!at) return null;
  return <p class="fork"><button onClick={() => talk.fork(at.id)} title="A new session begins with what was said up to here">{at.position === "before" ? "Fork before this" : "Fork from here"}</button></p>;
}

// when says when something was kept, in a sentence.
function when(at: number): string {
  const t = since(new Date(at));
  return t === "now" ? "a moment ago" : /^\d/.test(t) && t.endsWith("ago") ? t : "on " + t;
}

// After is what follows the last entry.
function After({ talk }: { talk: Conversation }) {
  const state = talk.fold.value.state.value, waits = state === "requires_action" || talk.asks.value.length > 0;
  const last = talk.fold.value.entries.value.at(-1), failed = last?.kind === "turn" && (last.reason === "error" || last.reason === "cancelled");
  const again = failed && !talk.busy.value && talk.sending.value.length === 0 && talk.role.value !== "viewer" ? talk.lastPrompt() : undefined;
  return (
    <>
      {again && <p class="turn"><button onClick={() => talk.prompt(again)}>Try again</button></p>}
      <Sendings talk={talk} />
      {talk.busy.value && <p class="working" role="status">{waits ? "Waiting for an answer" : "Working …"}</p>}
      <Remarked talk={talk} />
    </>
  );
}

function Remarked({ talk }: { talk: Conversation }) {
  return talk.remark.value && <p class="remark" role="status">{prose(talk.remark.value.text)}</p>;
}
