// Markdown as nodes. HTML in it is text, and nothing it refers to is loaded.

import type { Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useContext, useMemo, useState } from "preact/hooks";
import { Code } from "./Code";
import { address, type Block, elsewhere, entities, Reader } from "./lexer";
import { beginning, number, prose, visible } from "./text";
import { Whole } from "./whole";

/** longest is how many characters are shown unless all are asked for. */
export const longest = 200_000;

export interface MarkdownProps {
  text: string;
  /** The text still grows. */
  live?: boolean;
}

/** Markdown shows a text that may be formatted. */
export function Markdown({ text, live = false }: MarkdownProps) {
  const [all, setAll] = useState(useContext(Whole));
  const reader = useMemo(() => new Reader(), []);
  const shown = all ? text : beginning(text, longest);
  const blocks = reader.read(shown, live);
  return (
    <div class="markdown">
      {blocks.map((b, i) => <Part key={b.key} block={b} live={live && i === blocks.length - 1} />)}
      {shown.length < text.length && <button class="more" onClick={() => setAll(true)}>… {number(text.length - shown.length)} characters more: show all</button>}
    </div>
  );
}

// A Part is made again only if it has changed.
const Part = memo(
  ({ block, live }: { block: Block; live: boolean }) => <>{blockOf(block.token, live)}</>,
  (a, b) => a.block === b.block && a.live === b.live,
);

// Names of elements, so that no text of an agent ever is one.
const headings = ["h4", "h5", "h6"] as const;

function blockOf(token: Token, live: boolean): ComponentChildren {
  const t = token as Tokens.Generic;
  switch (t.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      // Below the heading of the message.
      const H = headings[Math.min(Math.max(t.depth, 1), 3) - 1]!;
      return <H class={"level-" + Math.min(Math.max(t.depth, 1), 6)} dir="auto">{inline(t.tokens)}</H>;
    }
    case "paragraph":
      return <p dir="auto">{inline(t.tokens)}</p>;
    case "text":
      return t.tokens ? inline(t.tokens) : words(t.text);
    case "hr":
      return <hr />;
    case "blockquote":
      return <blockquote>{blocksOf(t.tokens, live)}</blockquote>;
    case "code":
      return <Code text={t.text} lang={t.lang ? entities(t.lang) : ""} live={live} />;
    case "list":
      return list(token as Tokens.List, live);
    case "table":
      return table(token as Tokens.Table);
    case "html":
      return <p class="html" dir="auto">{prose(t.raw.replace(/\n+$/, ""))}</p>;
    default:
      return inlineOf(token);
  }
}

function blocksOf(tokens: Token[] | undefined, live: boolean): ComponentChildren {
  return tokens?.map((t, i) => blockOf(t, live && i === tokens.length - 1));
}

function list(t: Tokens.List, live: boolean): ComponentChildren {
  const items = t.items.map((item, i) => (
    <li class={item.task ? "task" : undefined} dir="auto">{blocksOf(item.tokens, live && i === t.items.length - 1)}</li>
  ));
  if (!t.ordered) return <ul>{items}</ul>;
  return <ol start={typeof t.start === "number" && t.start !== 1 ? t.start : undefined}>{items}</ol>;
}

function table(t: Tokens.Table): ComponentChildren {
  const cell = (c: Tokens.TableCell) => (c.align ? "align-" + c.align : undefined);
  return (
    <div class="table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead><tr>{t.header.map((c) => <th scope="col" class={cell(c)} dir="auto">{inline(c.tokens)}</th>)}</tr></thead>
        <tbody>{t.rows.map((row) => <tr>{row.map((c) => <td class={cell(c)} dir="auto">{inline(c.tokens)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return tokens?.map(inlineOf);
}

function inlineOf(token: Token): ComponentChildren {
  const t = token as Tokens.Generic;
  switch (t.type) {
    case "text":
      return t.tokens ? inline(t.tokens) : t.escaped ? prose(t.text) : words(t.text);
    case "escape":
      return prose(t.text);
    case "strong":
      return <strong>{inline(t.tokens)}</strong>;
    case "em":
      return <em>{inline(t.tokens)}</em>;
    case "del":
      return <del>{inline(t.tokens)}</del>;
    case "codespan":
      return <code>{visible(t.text)}</code>;
    case "br":
      return <br />;
    case "checkbox":
      return <><span class="box" role="img" aria-label={t.checked ? "done" : "to do"}>{t.checked ? "☑" : "☐"}</span>{" "}</>;
    case "link":
      return link(token as Tokens.Link);
    case "image":
      return image(token as Tokens.Image);
    default:
      return prose(t.raw ?? "");
  }
}

function words(text: string): string {
  return prose(entities(text));
}

function link(t: Tokens.Link): ComponentChildren {
  const href = address(t.href, t.autolink);
  if (href === null) return <span class="no-link" title={visible(beginning(t.href, 1000))}>{inline(t.tokens)}</span>;
  const host = t.autolink ? "" : elsewhere(wordsOf(t.tokens), href);
  return <><Link href={href} title={t.title ?? ""}>{inline(t.tokens)}</Link>{host && <span class="host"> ({visible(host)})</span>}</>;
}

/** Link leads out of the page. href is one that address has returned. */
export function Link({ href, title = "", children }: { href: string; title?: string; children: ComponentChildren }) {
  const where = visible(beginning(href, 1000));
  return <a href={href} target="_blank" rel="noopener noreferrer" title={title ? where + "\n" + visible(title) : where}>{children}</a>;
}

// image names a picture. It is not loaded: whoever serves it would learn that it was looked at.
function image(t: Tokens.Image): ComponentChildren {
  const name = "[image: " + words(t.text || "without a name") + "]";
  const href = address(t.href);
  if (href === null) return <span class="no-link" title={visible(beginning(t.href, 1000))}>{name}</span>;
  return <Link href={href}>{name} {visible(beginning(href, 200))}</Link>;
}

function wordsOf(tokens: Token[]): string {
  return tokens.map((t) => {
    const g = t as Tokens.Generic;
    return g.tokens ? wordsOf(g.tokens) : entities(String(g.text ?? ""));
  }).join("");
}
