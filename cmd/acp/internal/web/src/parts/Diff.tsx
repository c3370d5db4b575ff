// Changes to files.

import type { DiffChange, DiffPatch } from "@agentclientprotocol/sdk/experimental/v2";
import type { ComponentChildren } from "preact";
import { memo } from "preact/compat";
import { useContext, useMemo, useState } from "preact/hooks";
import { Plain } from "./Json";
import { type File, files, first, type Group, lines, type Mark, type Row, words } from "./patch";
import { beginning, number, plural, visible } from "./text";
import { useCut, Whole } from "./whole";

const mostLines = 100; // that are shown at first; a question shows all
const step = 4000; // more when they are asked for
const mostFiles = 100; // likewise, of files
const longest = 5000; // characters of a line

export interface DiffProps {
  changes: readonly DiffChange[];
  patch?: DiffPatch | null;
}

/** Diff shows changes to files: side by side where there is room, else one after the other. */
export function Diff({ changes, patch }: DiffProps) {
  const [limit, setLimit] = useState(useContext(Whole) ? step : mostLines);
  const [most, setMost] = useState(mostFiles);
  const all = useMemo(() => files(changes, patch), [changes, patch]);
  const shown = useMemo(() => {
    let left = limit;
    return all.files.slice(0, most).map((f) => {
      const n = lines(f);
      const part = n <= left ? f : first(f, left);
      left = Math.max(0, left - n);
      return part;
    });
  }, [all, limit, most]);
  const total = all.files.reduce((n, f) => n + lines(f), 0);
  const there = shown.reduce((n, f) => n + lines(f), 0);
  return (
    <div class="diff">
      {shown.map((f, i) => <FileView key={i} file={f} whole={all.files[i]!} />)}
      {all.files.length > most && <button class="more" onClick={() => setMost(most + mostFiles)}>{plural(all.files.length - most, "file")} more</button>}
      {there < total && <button class="more" onClick={() => setLimit(limit + step)}>{plural(total - there, "line")} more</button>}
      {all.rest !== "" && <Plain text={all.rest} />}
    </div>
  );
}

const operations: Record<string, string> = { add: "new", delete: "deleted", move: "moved", copy: "copied", modify: "" };

const FileView = memo(function FileView({ file, whole }: { file: File; whole: File }) {
  const said = Object.hasOwn(operations, file.operation) ? operations[file.operation]! : file.operation;
  const cut = useCut();
  const path = visible(cut(file.path, 1000));
  return (
    <div class="file" role="group" aria-label={"Changes to " + path}>
      <h4>
        {said && <span class="kind">{visible(beginning(said, 40))}</span>}
        <span class="path">{file.from && visible(cut(file.from, 1000)) + " → "}{path}</span>
        {file.note && <span class="kind">{visible(beginning(file.note, 80))}</span>}
        {whole.plus + whole.minus > 0 && (
          <span class="count">
            <span class="added" role="img" aria-label={plural(whole.plus, "line") + " added"}>+{number(whole.plus)}</span>{" "}
            <span class="removed" role="img" aria-label={plural(whole.minus, "line") + " removed"}>−{number(whole.minus)}</span>
          </span>
        )}
      </h4>
      {file.hunks.length > 0 && (
        <div class="lines" tabIndex={0} role="group" aria-label={"Lines of " + path}>
          <div class="sheet">
            {file.hunks.map((h) => <><div class="hunk">{h.head}</div>{h.groups.map(group)}</>)}
          </div>
        </div>
      )}
    </div>
  );
});

// A group is a grid of one column or two. What is the same in both files is there twice, of which one is seen.
function group(g: Group): ComponentChildren {
  if (g.same.length > 0) {
    return <div class="group">{g.same.map((r) => <><Cell kind="twin" row={r} /><Cell kind="both" row={r} /></>)}</div>;
  }
  const cells: ComponentChildren[] = [];
  for (let i = 0; i < Math.max(g.removed.length, g.added.length); i++) {
    const before = g.removed[i], after = g.added[i];
    const marks = before && after ? words(before.text, after.text) : null;
    if (before) cells.push(<Cell kind="old" row={before} marks={marks?.before} />);
    if (after) cells.push(<Cell kind="new" row={after} marks={marks?.after} />);
  }
  return <div class="group">{cells}</div>;
}

const elements = { old: "del", new: "ins", both: "div", twin: "div" } as const;

function Cell({ kind, row, marks }: { kind: keyof typeof elements; row: Row; marks?: Mark[] }) {
  const Element = elements[kind], cut = useCut();
  return (
    <Element class={"cell " + kind} aria-hidden={kind === "twin" ? "true" : undefined}>
      {kind !== "new" && <span class="no at-old">{row.old}</span>}
      {kind === "new" && <span class="no at-old" />}
      <span class="no at-new">{row.new}</span>
      <span class="words">
        {marks ? marks.map((m) => (m.changed ? <mark>{visible(m.text)}</mark> : visible(m.text))) : line(row.text, cut(row.text, longest))}
        {row.endless && <span class="endless" title="The file does not end with a line end"> ⏎̸</span>}
        {"\n"}
      </span>
    </Element>
  );
}

function line(text: string, shown: string): string {
  return visible(shown) + (shown.length < text.length ? " … " + plural(text.length - shown.length, "character") + " more" : "");
}
