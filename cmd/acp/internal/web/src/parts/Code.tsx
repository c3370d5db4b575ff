// Code, with colours once it is complete.

import type { ComponentChildren } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { Piece } from "./highlight";
import { beginning, number, visible } from "./text";
import { Whole } from "./whole";

const colourful = 50_000; // characters of a code that get colours
const longest = 100_000; // characters that are shown unless asked

export interface CodeProps {
  text: string;
  /** The language as the agent names it; "" if it does not. */
  lang?: string;
  /** The text still grows. */
  live?: boolean;
}

/** Code shows code in a box that scrolls, with a button that copies it as it was sent. */
export function Code({ text, lang = "", live = false }: CodeProps) {
  const [all, setAll] = useState(useContext(Whole));
  const pieces = useColours(text, lang, live);
  const name = visible(beginning(lang.trim().split(/\s/, 1)[0] ?? "", 30));
  const shown = all ? text : beginning(text, longest);
  return (
    <figure class="code">
      <figcaption>
        <span class="lang">{name || "text"}</span>
        <Copy text={text} />
      </figcaption>
      <pre tabIndex={0} role="group" aria-label={(name || "text") + " code"}>
        <code>{pieces ? nodes(pieces) : visible(shown)}</code>
        {shown.length < text.length && <button class="more" onClick={() => setAll(true)}>… {number(text.length - shown.length)} characters more</button>}
      </pre>
    </figure>
  );
}

// useColours returns the pieces of a text, or null as long as there are none.
function useColours(text: string, lang: string, live: boolean): Piece[] | null {
  const [made, setMade] = useState<{ text: string; lang: string; pieces: Piece[] | null } | null>(null);
  const name = /^[\w+#.-]*/.exec(lang.trim())![0];
  useEffect(() => {
    if (live || !name || text.length > colourful) return;
    let stale = false;
    import("./highlight").then(
      (m) => {
        if (!stale) setMade({ text, lang: name, pieces: m.highlight(name, text) });
      },
      () => {}, // without a network the code stays plain
    );
    return () => {
      stale = true;
    };
  }, [text, name, live]);
  return made && made.text === text && made.lang === name ? made.pieces : null;
}

function nodes(pieces: Piece[]): ComponentChildren {
  return pieces.map((p) => (typeof p === "string" ? visible(p) : <span class={p.classes.join(" ")}>{nodes(p.pieces)}</span>));
}

/** Copy is a button that copies a text. */
export function Copy({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const click = async () => {
    const ok = await copy(text);
    setSaid(ok ? "Copied" : "Not copied");
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setSaid(""), 2000);
  };
  return (
    <button class="copy" type="button" aria-label="Copy" onClick={click}>
      <span aria-live="polite">{said || "Copy"}</span>
    </button>
  );
}

// copy puts a text into the clipboard. A page that did not come over TLS has no navigator.clipboard.
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const ok = document.execCommand("copy");
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
    return ok;
  }
}
