import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { Blocks } from "../parts/Blocks";
import { Brief, Json } from "../parts/Json";
import { PlanView } from "../parts/Plan";
import { TerminalView } from "../parts/Terminal";
import { ToolView } from "../parts/Tool";
import { plural, prose, visible } from "../parts/text";
import { textOf } from "../conversation";
import type { Entry, Message, Subagent, Terminal, Turn } from "../fold";

// Terminals finds terminals by their names.
type Terminals = (id: string) => Terminal | undefined;

// EntryView shows an entry. It is drawn again only when the entry has changed.
// you is the name by which others know this client, "" if there is none.
export const EntryView = memo(function EntryView({ entry, terminals, you = "" }: { entry: Entry; terminals: Terminals; you?: string }) {
  void entry.rev.value; // drawn again when this is another one
  switch (entry.kind) {
    case "message": return <MessageView m={entry} you={you} />;
    case "tool": return <ToolView call={entry.call} terminals={terminals} decided={entry.decided} skipped={entry.skipped} />;
    case "terminal": return entry.shown ? null : <article class="entry"><TerminalView terminal={entry} /></article>;
    case "plan": return <PlanView plan={entry.plan} removed={entry.removed} />;
    case "notice": return (
      <article class={"entry notice " + entry.severity}><h3>{prose(entry.title) || "Notice"}</h3>{entry.description && <p>{prose(entry.description)}</p>}</article>
    );
    case "compaction": return (
      <article class="entry compaction">
        <h3>{entry.status === "failed" ? "The context could not be shortened" : entry.status === "completed" ? "The context was shortened" : "Shortening the context …"}</h3>
        {entry.error && <p class="bad">{prose(entry.error)}</p>}
        {entry.summary.length > 0 && <details><summary>Summary <Brief value={textOf(entry.summary.slice(0, 1))} /></summary><Skipped n={entry.skipped} /><Blocks content={entry.summary} live={false} /></details>}
      </article>
    );
    case "subagent": return <SubagentView s={entry} />;
    case "turn": return <p class={"turn " + entry.reason}>{ending(entry, you)}{entry.text && `: ${prose(entry.text)}`}</p>;
    case "other": return <article class="entry"><details><summary>Something this page does not know <span class="kind">{visible(entry.name)}</span></summary><Json value={entry.update} /></details></article>;
  }
});

const most = 200; // entries of a subagent that are drawn at first

function SubagentView({ s }: { s: Subagent }) {
  const [all, showAll] = useState(false);
  const entries = s.fold.entries.value, terminals = (id: string) => s.fold.terminal(id), hidden = all ? 0 : Math.max(0, entries.length - most);
  return (
    <article class="entry subagent">
      <h3>{visible(s.title) || "Subagent"} <span class="status">{visible(s.state)}</span></h3>
      {s.description && <p>{visible(s.description)}</p>}
      {entries.length > 0 && (
        <details>
          <summary>What it does <span class="brief">{plural(entries.length, "entry", "entries")}</span></summary>
          {hidden > 0 && <button onClick={() => showAll(true)}>Show {hidden} more before these</button>}
          {entries.slice(hidden).map((e) => <EntryView key={e.key} entry={e} terminals={terminals} />)}
        </details>
      )}
    </article>
  );
}

const reasons: Record<string, string> = {
  cancelled: "Stopped", refusal: "The agent refused", max_tokens: "The answer was too long and ends here",
  max_turn_requests: "The agent made too many requests in one turn", error: "The turn failed",
};

// ending says how a turn has ended.
function ending({ reason, by, lost }: Turn, you: string): string {
  if (reason === "cancelled" && lost) return "Interrupted: the server ended in the middle";
  if (reason === "cancelled" && by && by !== you) return "Stopped by " + visible(by);
  return reasons[reason] ?? visible(`Ended: ${reason}`);
}

// Skipped says that a text is longer than what is shown of it, and where the rest is.
function Skipped({ n }: { n: number }) {
  return n > 0 ? <p class="note">{plural(n, "character")} before this are not shown. “Export as Markdown” in the menu of the session has them.</p> : null;
}

function MessageView({ m, you }: { m: Message; you: string }) {
  switch (m.role) {
    case "thought": return (
      <article class="message thought" aria-label="Thought"><details open={m.live}><summary>Thought <Brief value={textOf(m.content.slice(0, 1))} /></summary><Skipped n={m.skipped} /><Blocks content={m.content} live={m.live} /></details></article>
    );
    case "user": return <article class="message user"><h3>{m.author === you ? "You" : visible(m.author) || "You"}</h3><Skipped n={m.skipped} /><Blocks content={m.content} live={m.live} /></article>;
    default: return <article class="message agent"><h3 class="unseen">Agent</h3><Skipped n={m.skipped} /><Blocks content={m.content} live={m.live} /></article>;
  }
}
