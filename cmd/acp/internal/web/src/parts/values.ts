// Reading JSON so that it can be shown as it was: numbers keep all their digits, and members that come twice are there
// twice, which JSON.parse does not do.

const deepest = 200;

export interface Leaf {
  kind: "string" | "number" | "word";
  raw: string;
}

export interface Branch {
  kind: "object" | "array";
  items: { key?: string; value: Value }[];
}

export type Value = Leaf | Branch;

/** parse returns the value of a text. It throws if that is not JSON, or deeper than 200 levels. */
export function parse(text: string): Value {
  const token = /[ \t\n\r]*(?:([{}\[\],:])|(")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;
  let mark = "", raw = "";
  let kind: Leaf["kind"] = "word";
  const next = () => {
    const m = token.exec(text);
    if (!m) throw new SyntaxError("not JSON");
    mark = m[1] ?? "";
    raw = m[3] ?? m[4] ?? "";
    kind = m[2] ? "string" : m[3] ? "number" : "word";
    if (m[2]) {
      const start = token.lastIndex - 1;
      token.lastIndex = closing(text, start);
      raw = text.slice(start, token.lastIndex);
    }
  };
  const is = (m: string) => mark === m;
  const value = (depth: number): Value => {
    if (raw) return { kind, raw };
    if (depth > deepest || !(is("{") || is("["))) throw new SyntaxError("not JSON, or too deep");
    const object = is("{"), end = object ? "}" : "]";
    const items: Branch["items"] = [];
    next();
    while (!is(end)) {
      let key: string | undefined;
      if (object) {
        if (kind !== "string" || !raw) throw new SyntaxError("not JSON");
        key = raw;
        next();
        if (!is(":")) throw new SyntaxError("not JSON");
        next();
      }
      items.push({ key, value: value(depth + 1) });
      next();
      if (is(",")) {
        next();
        if (is(end)) throw new SyntaxError("not JSON");
      } else if (!is(end)) throw new SyntaxError("not JSON");
    }
    return { kind: object ? "object" : "array", items };
  };
  next();
  const v = value(0);
  if (text.slice(token.lastIndex).trim() !== "") throw new SyntaxError("not JSON");
  return v;
}

// closing returns where a string ends that begins at i. A pattern would run out of stack in a long one.
function closing(text: string, i: number): number {
  for (let end = text.indexOf('"', i + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let n = 0;
    while (text[end - 1 - n] === "\\") n++;
    if (n % 2 === 0) return end + 1;
  }
  throw new SyntaxError("not JSON");
}

/** decode returns what a string says. */
export function decode(raw: string): string {
  try {
    return JSON.parse(raw) as string;
  } catch {
    return raw.slice(1, -1);
  }
}
