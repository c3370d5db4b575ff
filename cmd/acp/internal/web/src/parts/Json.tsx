// JSON as a tree that opens and closes.

import { useContext, useMemo, useState } from "preact/hooks";
import { type Branch, decode, type Leaf, parse, type Value } from "./values";
import { beginning, number, seenCode } from "./text";
import { Whole } from "./whole";

const page = 200; // members that are shown at once
const longest = 2000; // characters of a string
const roomy = 80; // values that are open from the start
const largest = 1_000_000; // characters of a text that is made a tree

export interface JsonProps {
  /** A value; undefined is shown as null. */
  value?: unknown;
  /** Or its text, which keeps all digits of numbers and members that come twice. */
  text?: string;
  /** Paths of members to point at, such as params.update.content. Where one is missing, its parent is pointed at. */
  marked?: readonly string[];
  /** A text is made a tree however long it is. */
  whole?: boolean;
}

/** A Look says what is open from the start, and what is pointed at. */
interface Look {
  open: Set<Value>;
  here: Set<Value>;
}

/** Json shows a value as a tree, or a text that is not JSON as it is. */
export function Json({ value, text, marked, whole = false }: JsonProps) {
  const { source, tree, look } = useMemo(() => {
    const source = text ?? stringify(value);
    try {
      if (source.length > largest && !whole) throw new RangeError("too long");
      const tree = parse(source);
      const look: Look = { open: new Set(), here: new Set() };
      opened(tree, 0, { left: roomy }, look.open);
      for (const path of marked ?? []) point(tree, path.replace(/\[(\d+)\]/g, ".$1").split("."), look);
      return { source, tree, look };
    } catch {
      return { source, tree: null, look: null };
    }
  }, [value, text, marked, whole]);
  if (!tree) return <Plain text={source} />;
  return <div class="json"><Node value={tree} look={look} /></div>;
}

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return String(value); // it refers to itself
  }
}

// opened finds out what is open from the start.
function opened(v: Value, depth: number, budget: { left: number }, open: Set<Value>): void {
  if (!("items" in v)) return;
  budget.left -= v.items.length;
  if (depth > 0 && (budget.left <= 0 || depth >= 12)) return;
  open.add(v);
  for (const item of v.items.slice(0, page)) opened(item.value, depth + 1, budget, open);
}

// point marks as much of a path as there is, and opens what leads there.
function point(tree: Value, path: string[], look: Look): void {
  let v = tree;
  for (const step of path) {
    if (!("items" in v)) break;
    const item: Branch["items"][number] | undefined = v.items.find((x, i) => (x.key === undefined ? String(i) : decode(x.key)) === step);
    if (!item) break;
    look.open.add(v);
    v = item.value;
  }
  if (v !== tree) look.here.add(v);
}

const members = 6; // that a brief has

/** Brief is the beginning of a value in a line, for what is folded. */
export function Brief({ value }: { value: unknown }) {
  const short = (v: unknown): string => (typeof v === "string" ? beginning(v.trim().split("\n", 1)[0]!, 60) : Array.isArray(v) ? `[${v.length}]` : v !== null && typeof v === "object" ? "{…}" : String(v));
  const inside = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.entries(value) : null;
  const text = inside ? inside.slice(0, members).map(([k, v]) => beginning(k, 30) + ": " + short(v)).join(", ") + (inside.length > members ? " …" : "") : short(value);
  return <span class="brief">{seenCode(text)}</span>;
}

/** Plain shows a text as it is, the beginning of it if it is long. */
export function Plain({ text, most = 20_000 }: { text: string; most?: number }) {
  const [all, setAll] = useState(useContext(Whole));
  const shown = all ? text : beginning(text, most);
  return (
    <pre class="plain">
      {seenCode(shown)}
      {shown.length < text.length && <button class="more" onClick={() => setAll(true)}>… {number(text.length - shown.length)} characters more</button>}
    </pre>
  );
}

function Node({ name, value, look }: { name?: string; value: Value; look: Look }) {
  const key = name === undefined ? null : <><span class="key">{seenCode(beginning(name, longest))}</span><span class="mark">: </span></>;
  const here = look.here.has(value) ? " here" : "";
  if (!("items" in value)) return <div class={"leaf" + here}>{key}<Scalar value={value} /></div>;
  const [start, end] = value.kind === "object" ? ["{", "}"] : ["[", "]"];
  if (value.items.length === 0) return <div class={"leaf" + here}>{key}<span class="mark">{start + end}</span></div>;
  return <Tree name={name} value={value} look={look} />;
}

function Tree({ name, value, look }: { name?: string; value: Branch; look: Look }) {
  const [isOpen, setOpen] = useState(look.open.has(value));
  const [made, setMade] = useState(page);
  const [start, end] = value.kind === "object" ? ["{", "}"] : ["[", "]"];
  const rest = value.items.length - made;
  return (
    <details class={look.here.has(value) ? "here" : undefined} open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        {name !== undefined && <><span class="key">{seenCode(beginning(name, longest))}</span><span class="mark">: </span></>}
        <span class="mark">{start}</span>
        <span class="brief">{seenCode(beginning(brief(value), 120))}<span class="mark">{end}</span></span>
      </summary>
      {isOpen && (
        <div class="members">
          {value.items.slice(0, made).map((item, i) => <Node key={i} name={item.key} value={item.value} look={look} />)}
          {rest > 0 && <button class="more" onClick={() => setMade(made + page)}>show {number(Math.min(rest, page))} of {number(rest)} more</button>}
        </div>
      )}
      <div class="mark close">{end}</div>
    </details>
  );
}

// brief says on a line what an object or array has.
function brief(v: Branch): string {
  const parts = v.items.slice(0, 4).map((item) => {
    const x = item.value;
    const s = !("items" in x) ? beginning(x.raw, 30) : x.kind === "object" ? "{…}" : "[" + x.items.length + "]";
    return item.key === undefined ? s : beginning(item.key.slice(1, -1), 60) + ": " + s;
  });
  if (v.items.length > 4) parts.push("+" + number(v.items.length - 4));
  return " " + parts.join(", ") + " ";
}

function Scalar({ value }: { value: Leaf }) {
  const [all, setAll] = useState(useContext(Whole));
  const [lines, setLines] = useState(false);
  if (value.kind !== "string") return <span class={value.kind}>{seenCode(value.raw)}</span>;
  const shown = all ? value.raw : beginning(value.raw, longest);
  // Texts of several lines can be read as such.
  const said = value.raw.includes("\\n") ? decode(value.raw) : "";
  return (
    <span class="string">
      {seenCode(shown)}
      {shown.length < value.raw.length && <button class="more" onClick={() => setAll(true)}>… {number(value.raw.length - shown.length)} characters more</button>}
      {said.includes("\n") && <>{" "}<button class="more" aria-expanded={lines} onClick={() => setLines(!lines)}>lines</button></>}
      {lines && <Plain text={said} most={Infinity} />}
    </span>
  );
}
