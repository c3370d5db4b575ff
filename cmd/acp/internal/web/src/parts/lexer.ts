// Markdown as tokens, of a text that may still grow.

import { Lexer, type Token, type Tokens } from "marked";
import { begins } from "./text";

const deepest = 32; // levels of lists, quotes and emphasis; what is deeper is text
const longest = 10_000; // characters of a paragraph that are searched for emphasis and links
const formula = 100; // lines of a formula

// formulaOf returns the formula that a text begins with, as code: $$…$$, or \[…\] with a space or the end of the line after \[.
// It ends at the end of a line, and has no empty one. Nothing here draws it. Package markdown reads it in the same way.
function formulaOf(src: string): Tokens.Code | undefined {
  const begin = /^ {0,3}(\$\$(?!\$)|\\\[(?=\s|$))/.exec(src);
  if (!begin) return undefined;
  const end = begin[1] === "$$" ? "$$" : "\\]";
  const from = begin[0].length;
  for (let at = from, n = 0; n < formula; n++) {
    const stop = src.indexOf("\n", at);
    const next = stop < 0 ? src.length : stop + 1;
    const line = src.slice(at, stop < 0 ? src.length : stop).trimEnd();
    if (n > 0 && /^[\s>]*$/.test(line)) return undefined;
    if (line.endsWith(end)) {
      const text = src.slice(from, at + line.length - end.length);
      if (n === 0 && text.trim() === "") return undefined;
      return { type: "code", raw: src.slice(0, next), lang: "math", text: text.replace(/^[ \t]*\n?/, "").trimEnd() };
    }
    if (n === 0 && line.includes(end) || stop < 0) return undefined;
    at = next;
  }
  return undefined;
}

// startOf returns where a formula begins in the paragraph that a text begins with, which ends there.
function startOf(src: string): number | void {
  const paragraph = src.slice(0, longest).split(/\n[ \t]*\n/, 1)[0]!;
  for (const at of paragraph.matchAll(/\n(?= {0,3}(?:\$\$|\\\[))/g)) {
    if (formulaOf(src.slice(at.index + 1, at.index + 1 + longest))) return at.index + 1;
  }
}

const options = {
  gfm: true, breaks: true,
  extensions: { block: [formulaOf], startBlock: [startOf], renderers: {}, childTokens: {} },
};

// Bounded is a lexer that neither runs out of stack nor needs the square of a length.
class Bounded extends Lexer {
  private depth = 0;

  // The base class returns the list it is given, of whichever of two types.
  override blockTokens(src: string, tokens: any = [], clipped = false): any {
    if (this.depth >= deepest) {
      if (src) tokens.push({ type: "paragraph", raw: src, text: src, tokens: [plain(src)] } as Tokens.Paragraph);
      return tokens;
    }
    this.depth++;
    try {
      return super.blockTokens(src, tokens, clipped);
    } finally {
      this.depth--;
    }
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (this.depth >= deepest || src.length > longest) {
      tokens.push(plain(src));
      return tokens;
    }
    this.depth++;
    try {
      return super.inlineTokens(src, tokens);
    } finally {
      this.depth--;
    }
  }
}

function plain(src: string): Tokens.Text {
  return { type: "text", raw: src, text: src, escaped: false };
}

/** A block is a part of a document at its top. As long as it is the same, so is its token. */
export interface Block {
  key: number;
  token: Token;
}

/** A Reader finds the blocks of a text. */
export class Reader {
  private text = "";
  private blocks: Block[] = [];
  private done = 0; // blocks that no more text changes
  private end = 0; // of these in the text
  private links: Record<string, { href: string; title: string }> = {};
  private complete = true;

  /** read returns the blocks of a text. If it is the last one with something added, and still live, this costs as much
   * as what is added and the last two blocks. */
  read(source: string, live: boolean): readonly Block[] {
    const text = source.includes("\r") ? source.replace(/\r\n?/g, "\n") : source;
    if (text === this.text && (live || this.complete)) return this.blocks;
    if (!live || !begins(text, this.text)) {
      this.done = this.end = 0;
      this.links = {};
    }
    this.text = text;
    this.complete = !live;
    const lexer = new Bounded(options);
    Object.assign(lexer.tokens.links, this.links);
    let tokens: Token[];
    const tail = text.slice(this.end);
    try {
      tokens = lexer.lex(tail);
    } catch {
      tokens = [{ type: "paragraph", raw: tail, text: tail, tokens: [plain(tail)] } as Tokens.Paragraph];
    }
    // A reference that is defined somewhere can change any block.
    const same = Object.keys(lexer.tokens.links).length === 0;
    const list = this.blocks.slice(0, this.done);
    for (const token of tokens) {
      const old = this.blocks[list.length];
      list.push(same && old && equal(old.token, token) ? old : { key: list.length, token });
    }
    this.blocks = list;
    if (live) this.settle(tail);
    return list;
  }

  // settle finds out which blocks no more text can change: all but the last two, and not those without an empty line
  // after them, as what follows a paragraph may turn out to be a part of it.
  private settle(tail: string): void {
    let raw = 0;
    for (let i = this.done; i < this.blocks.length; i++) raw += this.blocks[i]!.token.raw.length;
    if (raw !== tail.length) return; // where a block ends is not known
    let i = this.blocks.length;
    for (let left = 2; i > this.done && left > 0; ) if (this.blocks[--i]!.token.type !== "space") left--;
    while (i > this.done && !ended.has(this.blocks[i - 1]!.token.type)) i--;
    for (; this.done < i; this.done++) {
      const t = this.blocks[this.done]!.token;
      this.end += t.raw.length;
      if (t.type === "def" && !(t.tag in this.links)) this.links[t.tag] = { href: t.href, title: t.title };
    }
  }
}

const ended = new Set(["space", "heading", "hr", "code"]);

// equal reports whether two tokens are the same. The lexer may read one text in two ways, depending on what follows.
function equal(a: Token, b: Token): boolean {
  return a.type === b.type && a.raw === b.raw && ("text" in a && a.text) === ("text" in b && b.text);
}

/** address returns the address of a link that may be one, or null. Relative ones have nothing to be relative to. */
export function address(href: string, literal = false): string | null {
  if (href.length > 4000) return null;
  let url: URL;
  try {
    url = new URL(literal ? href : entities(href));
  } catch {
    return null;
  }
  return url.protocol === "https:" || url.protocol === "http:" || url.protocol === "mailto:" ? url.href : null;
}

/** elsewhere returns the host of an address if the words of the link name another one. */
export function elsewhere(words: string, href: string): string {
  const named = /^\s*(?:[a-z][a-z+.-]*:\/*)?(?:[^\s/@]*@)?((?:[^\s/:@.]+\.)+[^\s/:@.]{2,})/i.exec(words);
  if (!named || !/^https?:/.test(href)) return "";
  const host = new URL(href).hostname;
  const bare = (h: string) => h.toLowerCase().replace(/^www\./, "");
  let said = named[1]!;
  try {
    said = new URL("http://" + said).hostname;
  } catch {
    // Then it is no name of a host.
    return host;
  }
  return bare(said) === bare(host) ? "" : host;
}

// The names of characters that people write. All 2,125 would be more than the rest of this module.
const named: Record<string, string> = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—",
  ndash: "–", lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", bull: "•", middot: "·", deg: "°",
  plusmn: "±", times: "×", divide: "÷", frac12: "½", frac14: "¼", larr: "←", uarr: "↑", rarr: "→", darr: "↓", harr: "↔",
  rArr: "⇒", lArr: "⇐", hArr: "⇔", le: "≤", ge: "≥", ne: "≠", asymp: "≈", infin: "∞", minus: "−", sum: "∑", prod: "∏",
  radic: "√", isin: "∈", forall: "∀", exist: "∃", empty: "∅", cap: "∩", cup: "∪", sub: "⊂", sup: "⊃", and: "∧", or: "∨",
  not: "¬", alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", lambda: "λ", mu: "μ", pi: "π", sigma: "σ", tau: "τ",
  phi: "φ", omega: "ω", Delta: "Δ", Sigma: "Σ", Omega: "Ω", euro: "€", pound: "£", yen: "¥", cent: "¢", sect: "§", para: "¶",
  check: "✓", cross: "✗", star: "☆", starf: "★", hearts: "♥", ensp: "\u2002", emsp: "\u2003", thinsp: "\u2009", colon: ":",
  lpar: "(", rpar: ")", lsqb: "[", rsqb: "]", lbrace: "{", rbrace: "}", vert: "|", ast: "*", num: "#", lowbar: "_", grave: "`",
  Tab: "\t", NewLine: "\n", sol: "/", bsol: "\\", excl: "!", dollar: "$", percnt: "%", commat: "@", hat: "^", equals: "=",
};

/** entities replaces the references to characters in a text. */
export function entities(s: string): string {
  if (!s.includes("&")) return s;
  return s.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z][A-Za-z0-9]{1,9}));/g, (all, decimal, hex, name) => {
    if (name !== undefined) return Object.hasOwn(named, name) ? named[name]! : all;
    const n = decimal !== undefined ? parseInt(decimal, 10) : parseInt(hex, 16);
    return n === 0 || n > 0x10ffff || (n >= 0xd800 && n < 0xe000) ? "\ufffd" : String.fromCodePoint(n);
  });
}
