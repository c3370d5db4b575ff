import { useState } from "preact/hooks";
import { prose, since, visible } from "../parts/text";
import type { Page } from "../page";
import type { Session } from "../sessions";
import { MenuButton } from "./Menu";

// groups are in the order in which people look for them.
const groups: { name: string; has: (s: Session) => boolean }[] = [
  { name: "Waiting for an answer", has: (s) => !s.archived && s.questions > 0 },
  { name: "Running", has: (s) => !s.archived && s.questions === 0 && s.state === "running" },
  { name: "Idle", has: (s) => !s.archived && s.questions === 0 && s.state !== "running" },
  { name: "Archived", has: (s) => s.archived },
];

// List has the sessions, by what they do.
export function List({ page }: { page: Page }) {
  const [query, search] = useState("");
  const [agent, only] = useState("");
  const all = page.sessions.list.value;
  const agents = [...new Set(all.map((s) => s.agent).filter(Boolean))].sort();
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((s) => (!agent || s.agent === agent) && words.every((w) => `${s.title} ${s.cwd} ${s.agent} ${s.id}`.toLowerCase().includes(w)));
  return (
    <nav class="list" aria-label="Sessions">
      <header>
        <h1>acp</h1>
        <button class="primary" aria-keyshortcuts="n" title="New session (n)" onClick={() => { page.dialog.value = "new"; }}>New</button>
        <button aria-keyshortcuts="," title="Settings (,)" aria-label="Settings" onClick={() => { page.dialog.value = "settings"; }}>⚙</button>
        <button aria-keyshortcuts="?" title="Keys (?)" aria-label="Keys" onClick={() => { page.dialog.value = "help"; }}>?</button>
      </header>
      <div class="find" role="search">
        <input id="search" type="search" placeholder="Search sessions" aria-label="Search sessions" aria-keyshortcuts="/" value={query} onInput={(e) => search(e.currentTarget.value)} spellcheck={false} autocomplete="off" />
        {agents.length > 1 && (
          <select aria-label="Agent" value={agent} onChange={(e) => only(e.currentTarget.value)}>
            <option value="">all agents</option>
            {agents.map((a) => <option key={a} value={a}>{visible(a)}</option>)}
          </select>
        )}
      </div>
      <div class="rows">
        {groups.map((g) => <Group key={g.name} page={page} name={g.name} list={found.filter(g.has)} words={words.length > 0} />)}
        {page.sessions.loaded.value && found.length === 0 && <p class="empty">{all.length === 0 ? "No sessions yet." : "Nothing found."}</p>}
        {!page.sessions.loaded.value && <p class="empty">{page.sessions.failed.value || "Loading …"}</p>}
      </div>
    </nav>
  );
}

const few = 200; // sessions of a group that are shown at first

function Group({ page, name, list, words }: { page: Page; name: string; list: Session[]; words: boolean }) {
  const [open, toggle] = useState(name !== "Archived");
  const [shown, more] = useState(few);
  if (list.length === 0) return null;
  return (
    <section aria-label={name}>
      <h2><button aria-expanded={open || words} onClick={() => toggle(!open)}>{name} <span class="count">{list.length}</span></button></h2>
      {(open || words) && (
        <ul>
          {list.slice(0, shown).map((s) => <Row key={s.id} page={page} s={s} />)}
          {list.length > shown && <li><button class="more" onClick={() => more(shown + few)}>{list.length - shown} more</button></li>}
        </ul>
      )}
    </section>
  );
}

function Row({ page, s }: { page: Page; s: Session }) {
  const current = page.route.value === s.id;
  const state = s.questions > 0 ? "waits" : s.state === "running" ? "runs" : s.state === "failed" || s.state === "stopped" ? s.state : "idle";
  return (
    <li data-id={s.id}>
      <a class={"row " + state} href={"#/" + encodeURIComponent(s.id)} aria-current={current ? "page" : undefined} title={visible(s.cwd)}>
        <span class="dot" aria-hidden="true" />
        <span class="title">{prose(s.title) || "Untitled"}</span>
        <span class="when">{s.updated ? since(new Date(s.updated)) : ""}</span>
        <span class="about">
          {state === "failed" && <><b class="failure">failed</b> · </>}
          {state === "stopped" && "stopped · "}
          {visible(s.agent)}{s.agent && " · "}{visible(shortPath(s.cwd))}
          {s.owner && ` · ${visible(s.owner)}'s`}
          {s.clients > 0 && <span class="here" title={s.clients === 1 ? "one client has it open" : `${s.clients} clients have it open`}> · {s.clients} here</span>}
          {s.questions > 0 && <b class="asks"> · {s.questions === 1 ? "asks" : `${s.questions} questions`}</b>}
        </span>
      </a>
      <MenuButton page={page} id={s.id} title={prose(s.title) || "Untitled"} />
    </li>
  );
}

// shortPath returns the end of a path, which says most.
function shortPath(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return parts.length <= 2 ? path : "…/" + parts.slice(-2).join("/");
}
