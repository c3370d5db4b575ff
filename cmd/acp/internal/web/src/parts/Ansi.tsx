// The output of a program.

import { memo } from "preact/compat";
import { useContext, useMemo, useState } from "preact/hooks";
import { ends, type Line, Screen, type Span } from "./screen";
import { begins, plural, visible } from "./text";
import { Whole } from "./whole";

const mostLines = 400; // that are shown unless all are asked for
const mostCharacters = 100_000; // likewise

/** Ansi shows the output of a program as a terminal would, the end of it if it is long. What is added to a text costs
 * no more than that. */
export function Ansi({ text }: { text: string }) {
  const [all, setAll] = useState(useContext(Whole));
  const holder = useMemo(() => ({ text: "", screen: new Screen() }), []);
  if (holder.text !== text) {
    const grows = begins(text, holder.text);
    if (!grows) holder.screen = new Screen();
    holder.screen.feed(grows ? text.slice(holder.text.length) : text);
    holder.text = text;
  }
  const { lines, gone } = holder.screen;
  // A line end is not the beginning of a line that can be seen.
  const end = lines.length > 0 && lines[lines.length - 1]!.length === 0 ? lines.length - 1 : lines.length;
  const first = all ? 0 : ends(lines.slice(0, end), mostLines, mostCharacters);
  return (
    <pre class="ansi" tabIndex={0} role="group" aria-label="Output">
      {all && gone > 0 && <span class="note">{plural(gone, "line")} before this are not kept.{"\n"}</span>}
      {first > 0 && <><button class="more" onClick={() => setAll(true)}>{plural(first + gone, "line")} before this: show all</button>{"\n"}</>}
      {lines.slice(first, end).map((l) => <Row key={l.key} line={l} />)}
    </pre>
  );
}

// A Row is made again only for another line; lines that are complete stay the same.
const Row = memo(
  ({ line }: { line: Line }) => <span class="printed">{line.spans.map(span)}{"\n"}</span>,
  (a, b) => a.line === b.line,
);

function span(s: Span) {
  const { classes, color, background } = s.look;
  const text = visible(s.text);
  if (!classes && !color && !background) return text;
  if (!color && !background) return <span class={classes}>{text}</span>;
  // On the ground of the page a colour may have to be darker or lighter, which the style sheet sees to.
  if (color && !background) return <span class={classes + " tint"} style={{ "--tint": color }}>{text}</span>;
  return <span class={classes} style={{ color, backgroundColor: background }}>{text}</span>;
}
