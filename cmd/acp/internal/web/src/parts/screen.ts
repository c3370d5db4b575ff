// What a terminal would show of an output that is written line by line: colours, and the returns, backspaces and
// erasures of progress bars. A screen that programs paint as a whole is not emulated.

import { type Color, createAnsiSequenceParser, type DecorationType } from "ansi-sequence-parser";

/** How characters look. Equal looks are one object. */
export interface Look {
  classes: string;
  color?: string;
  background?: string;
}

export interface Span {
  text: string;
  look: Look;
}

/** A line of the output. It does not change once another one follows it. */
export interface Line {
  key: number;
  spans: Span[];
  length: number;
}

const plain: Look = { classes: "" };
const blank = { char: " ", look: plain };
const most = 10_000; // lines that are kept
const widest = 100_000; // characters of a line; what is longer goes on in the next one
const edited = 4000; // likewise, of a line that is written over
const farthest = 1000; // columns that a sequence may move to beyond the end of a line
const looksKept = 4096;

// An escape sequence, complete: CSI, strings (OSC, DCS, SOS, PM, APC) to their end, and the others.
const sequence = /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|(?=\x1b))|\x1b[ -/]*[0-~]|[\x00-\x08\x0a-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f]/g;
// The beginning of one, at the end of what came so far.
const unfinished = /(?:\x1b|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[\]PX^_][^\x07\x1b\x9c]*\x1b?|\x1b[ -/]+|[\ud800-\udbff])$/;
const patience = 8192; // characters of a sequence that does not end

/** Screen makes lines of an output that grows. */
export class Screen {
  /** The last lines, the one that is written last. */
  lines: Line[] = [];
  /** How many lines before these are not kept. */
  gone = 0;
  /** The characters that are in lines. */
  length = 0;

  private readonly parser = createAnsiSequenceParser();
  private readonly looks = new Map<string, Look>();
  private look = plain;
  private rest = "";
  private next = 0;
  // The line that is written: its spans as long as it only grows, else its characters.
  private spans: Span[] = [];
  private cells: { char: string; look: Look }[] | null = null;
  private column = 0;
  private width = 0;

  /** feed takes more of the output. A sequence may come in pieces. */
  feed(output: string): void {
    const text = this.rest + output;
    this.rest = "";
    let end = text.length;
    const tail = unfinished.exec(text.slice(-patience));
    if (tail && tail[0].length < patience) {
      end -= tail[0].length;
      this.rest = tail[0];
    }
    let at = 0;
    const take = text.slice(0, end);
    for (const m of take.matchAll(sequence)) {
      if (m.index > at) this.write(take.slice(at, m.index));
      at = m.index + m[0].length;
      this.control(m[0], m[1] ?? "", m[2] ?? "");
    }
    if (at < take.length) this.write(take.slice(at));
    this.show();
  }

  private control(all: string, parameters: string, final: string): void {
    switch (all) {
      case "\n": return this.feedLine();
      case "\r": return this.move(0);
      case "\b": return this.step(-1);
    }
    const n = parseInt(parameters, 10);
    switch (final) {
      case "m": return this.style(parameters);
      case "K": return this.erase(n || 0);
      case "G": return this.move((n || 1) - 1);
      case "C": return this.step(n || 1);
      case "D": return this.step(-(n || 1));
    }
  }

  // style has the parser read a sequence that sets colours; no others reach it.
  private style(parameters: string): void {
    if (!/^[0-9;:]*$/.test(parameters)) return;
    // With colons a colour may name a space before its numbers; the parser knows semicolons only.
    const list = parameters.replace(/([34]8):2:\d*:(\d+:\d+:\d+)/g, "$1:2:$2").replace(/\b4:(\d)/g, (_, k: string) => (k === "0" ? "24" : "4"));
    // The parser takes an empty number for none and resets before it sets, whatever the order.
    const numbers = list.replace(/:/g, ";").split(";").map((x) => x || "0").slice(0, 64);
    let from = 0;
    const flush = (to: number) => {
      if (to > from) this.parser.parse("\x1b[" + numbers.slice(from, to).join(";") + "m");
      from = to;
    };
    for (let i = 0; i < numbers.length; i++) {
      if (numbers[i] === "38" || numbers[i] === "48") i += numbers[i + 1] === "2" ? 4 : 2;
      else if (Number(numbers[i]) === 0 || (Number(numbers[i]) >= 21 && Number(numbers[i]) <= 29)) {
        flush(i);
        flush(i + 1);
      }
    }
    flush(numbers.length);
    const token = this.parser.parse("x")[0]!;
    this.look = this.lookOf(token.foreground, token.background, token.decorations);
  }

  private lookOf(fg: Color | null, bg: Color | null, decorations: Set<DecorationType>): Look {
    const classes: string[] = [];
    const look: Look = { classes: "" };
    const reverse = decorations.has("reverse");
    if (reverse) [fg, bg] = [bg, fg];
    const front = colour(fg), back = colour(bg);
    if (back) {
      // A ground of any colour needs a text that can be read on it.
      if (back.rgb) {
        look.background = css(back.rgb);
        const fits = front?.rgb && contrast(front.rgb, back.rgb) >= 4.5;
        if (fits) look.color = css(front.rgb!);
        else classes.push(contrast([255, 255, 255], back.rgb) >= 4.5 ? "fg-light" : "fg-dark");
      } else classes.push("bg-" + back.name);
    } else if (reverse) classes.push("bg-reverse");
    else if (front?.rgb) look.color = css(front.rgb);
    else if (front) classes.push("fg-" + front.name);
    for (const d of ["bold", "dim", "italic", "underline", "strikethrough", "overline"] as const) if (decorations.has(d)) classes.push(d);
    look.classes = classes.join(" ");
    if (!look.classes && !look.color && !look.background) return plain;
    const key = look.classes + "|" + (look.color ?? "") + "|" + (look.background ?? "");
    const known = this.looks.get(key);
    if (known) return known;
    if (this.looks.size < looksKept) this.looks.set(key, look);
    return look;
  }

  private write(text: string): void {
    for (;;) {
      const room = Math.max(0, (this.cells ? edited : widest) - this.column);
      if (text.length <= room) break;
      this.put(text.slice(0, room));
      text = text.slice(room);
      this.feedLine();
    }
    this.put(text);
  }

  private put(text: string): void {
    if (text === "") return;
    if (!this.cells && this.column === this.width) {
      const last = this.spans[this.spans.length - 1];
      if (last?.look === this.look) last.text += text;
      else this.spans.push({ text, look: this.look });
      this.column += text.length;
      this.width = this.column;
      return;
    }
    const cells = this.split();
    for (const char of text) cells[this.column++] = { char, look: this.look };
    this.width = Math.max(this.width, this.column);
  }

  // split makes characters of the line, as something is written over them.
  private split(): { char: string; look: Look }[] {
    if (this.cells) return this.cells;
    const before = this.column;
    let column = 0;
    this.cells = [];
    for (const s of this.spans) for (const char of s.text) this.cells.push({ char, look: s.look });
    // Columns counted units of UTF-16 so far.
    for (let units = 0; column < this.cells.length && units < before; column++) units += this.cells[column]!.char.length;
    this.column = Math.max(column, before > this.width ? before - this.width + this.cells.length : 0);
    this.width = this.cells.length;
    return this.cells;
  }

  private move(column: number): void {
    if (column <= 0) {
      this.column = 0;
      return;
    }
    const cells = this.split();
    this.column = Math.min(column, Math.max(this.width, farthest));
    while (cells.length < this.column) cells.push(blank);
    this.width = cells.length;
  }

  private step(columns: number): void {
    this.split();
    this.move(this.column + columns);
  }

  private erase(what: number): void {
    if (what === 0 && !this.cells && this.column === this.width) return; // as grep does everywhere
    const cells = this.split();
    if (what === 0) cells.length = Math.min(cells.length, this.column);
    else {
      const end = what === 1 ? Math.min(this.column + 1, cells.length) : cells.length;
      cells.fill(blank, 0, end);
    }
    this.width = cells.length;
    while (cells.length < this.column) cells.push(blank);
  }

  // show puts the line that is written into lines.
  private show(): void {
    const spans: Span[] = [];
    if (this.cells) {
      for (const c of this.cells) {
        const last = spans[spans.length - 1];
        if (last?.look === c.look) last.text += c.char;
        else spans.push({ text: c.char, look: c.look });
      }
    } else for (const s of this.spans) spans.push({ text: s.text, look: s.look });
    const length = spans.reduce((n, s) => n + s.text.length, 0);
    const last = this.lines[this.lines.length - 1];
    if (last?.key === this.next) {
      this.length -= last.length;
      this.lines.pop();
    }
    this.lines.push({ key: this.next, spans, length });
    this.length += length;
    // Now and then, as every removal moves all lines.
    if (this.lines.length > most + most / 10) this.drop();
  }

  private drop(): void {
    const old = this.lines.splice(0, this.lines.length - most);
    this.gone += old.length;
    for (const l of old) this.length -= l.length;
  }

  private feedLine(): void {
    this.show();
    this.next++;
    this.spans = [];
    this.cells = null;
    this.column = 0;
    this.width = 0;
  }
}

type RGB = readonly [number, number, number];

// colour returns the name of one of the sixteen colours, or the numbers of another.
function colour(c: Color | null): { name?: string; rgb?: RGB } | null {
  if (!c) return null;
  if (c.type === "named") return { name: kebab(c.name) };
  if (c.type === "rgb") return { rgb: c.rgb.map((x) => Math.min(Math.max(x, 0), 255)) as unknown as RGB };
  const i = c.index;
  if (!(i >= 0 && i <= 255)) return null;
  if (i < 16) return { name: names[i]! };
  if (i >= 232) return { rgb: [8 + 10 * (i - 232), 8 + 10 * (i - 232), 8 + 10 * (i - 232)] };
  const part = (x: number) => (x === 0 ? 0 : 55 + 40 * x);
  return { rgb: [part(Math.floor((i - 16) / 36)), part(Math.floor((i - 16) / 6) % 6), part((i - 16) % 6)] };
}

function css(c: RGB): string {
  return `rgb(${c.join(" ")})`;
}

// contrast is the one of WCAG.
function contrast(a: RGB, b: RGB): number {
  const light = (c: RGB) => {
    const [r, g, b] = c.map((x) => (x <= 10 ? x / 3294 : ((x / 255 + 0.055) / 1.055) ** 2.4)) as [number, number, number];
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const x = light(a), y = light(b);
  return Math.max(x, y) / Math.min(x, y);
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/, (c) => "-" + c.toLowerCase());
}

const names = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "bright-black", "bright-red", "bright-green",
  "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan", "bright-white"];

/** ends returns the index of the first line of the end of an output that is shown unless all of it is asked for. */
export function ends(lines: readonly Line[], mostLines: number, mostCharacters: number): number {
  let i = lines.length, n = 0;
  while (i > 0 && lines.length - i < mostLines) {
    n += lines[i - 1]!.length;
    if (n > mostCharacters && i < lines.length) break;
    i--;
  }
  return i;
}
