import { useEffect, useState } from "preact/hooks";
import { remove } from "../actions";
import { reasonOf } from "../link";
import { own } from "../meta";
import type { Page } from "../page";
import type { Session } from "../sessions";
import { Modal } from "./Modal";
import { prose, visible } from "../parts/text";

const close = (page: Page) => () => { page.dialog.value = ""; };

// Dialogs has the dialog about a session that is open, if one is.
export function Dialogs({ page }: { page: Page }) {
  const s = page.sessions.get(page.subject.value);
  if (!s) return null;
  switch (page.dialog.value) {
    case "rename": return <Rename key={s.id} page={page} s={s} />;
    case "delete": return <Delete key={s.id} page={page} s={s} />;
    case "share": return <Share key={s.id} page={page} s={s} />;
  }
  return null;
}

const maxTitle = 1024; // bytes, as the gateway counts

function Rename({ page, s }: { page: Page; s: Session }) {
  const [title, set] = useState((page.open.value?.id === s.id && page.open.value.fold.value.title.value) || s.title);
  const [wrong, setWrong] = useState("");
  const long = new TextEncoder().encode(title.trim()).length > maxTitle;
  const save = async (e: Event) => {
    e.preventDefault();
    try {
      await page.link.request("session/set_title", { sessionId: s.id, title: title.trim() });
      void page.sessions.load();
      page.dialog.value = "";
    } catch (err) {
      setWrong(reasonOf(err));
    }
  };
  return (
    <Modal title="Rename the session" close={close(page)}>
      <form class="form" onSubmit={save}>
        <label>Title <input value={title} onInput={(e) => set(e.currentTarget.value)} onFocus={(e) => e.currentTarget.select()} autofocus required /></label>
        <p class="about">Everybody sees it. What the agent calls the session later counts again.</p>
        <p class="bad" role="alert">{long ? `A title has ${maxTitle} bytes at most.` : wrong}</p>
        <div class="buttons"><button type="button" onClick={close(page)}>Cancel</button><button class="primary" disabled={!title.trim() || long}>Rename</button></div>
      </form>
    </Modal>
  );
}

function Delete({ page, s }: { page: Page; s: Session }) {
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const others = s.clients - (page.open.value?.id === s.id ? 1 : 0);
  const begin = async () => {
    setBusy(true);
    const failed = await remove(page, s.id);
    setBusy(false);
    if (failed) setWrong(failed);
    else page.dialog.value = "";
  };
  return (
    <Modal title="Delete the session?" close={close(page)}>
      <p class="quoted"><b>{prose(s.title) || "Untitled"}</b> · {visible(s.agent)} · {visible(s.cwd)}</p>
      <p>Everything that was said in it is lost, for everybody: prompts, answers, what was asked and decided, output of commands. Nobody can bring it back. Files in the directory stay, and so does what the agent keeps of its own.</p>
      {s.state === "running" && <p class="bad">A turn is running. It ends.</p>}
      {s.questions > 0 && <p class="bad">A question of the agent waits. It is withdrawn.</p>}
      {others > 0 && <p class="bad">{others === 1 ? "Somebody else has it open." : `${others} others have it open.`}</p>}
      <p class="bad" role="alert">{wrong}</p>
      <div class="buttons">
        <button autofocus onClick={close(page)}>Keep</button>
        {!s.archived && <button onClick={() => void page.act("session/archive", { sessionId: s.id }).then((ok) => { if (ok) page.dialog.value = ""; })}>Archive instead</button>}
        <button class="danger" disabled={busy} onClick={() => void begin()}>Delete for good</button>
      </div>
    </Modal>
  );
}

interface Shares {
  owner: string;
  shares: { user: string; role: string }[];
}

const roles: [string, string][] = [
  ["viewer", "may read, and fork it"], ["prompter", "may send prompts as well, and cancel those"],
  ["approver", "may answer the agent's questions as well, and change options"], ["owner", "may do everything: cancel, rename, archive, share and delete"],
];

function Share({ page, s }: { page: Page; s: Session }) {
  const [got, set] = useState<Shares | null>(null);
  const [wrong, setWrong] = useState("");
  const [user, setUser] = useState("");
  const [role, setRole] = useState("viewer");
  const call = async (more: object) => {
    setWrong("");
    try {
      set(await page.link.request<Shares>(own("share"), { sessionId: s.id, ...more }));
      return true;
    } catch (err) {
      setWrong(reasonOf(err));
      return false;
    }
  };
  useEffect(() => void call({}), []);
  const here = page.open.value?.id === s.id ? page.open.value.people.value : [];
  const choices = roles.map(([r]) => <option key={r} value={r}>{r}</option>);
  const add = async (e: Event) => {
    e.preventDefault();
    if (await call({ user: user.trim(), role })) setUser("");
  };
  return (
    <Modal title="Share the session" close={close(page)}>
      <p class="quoted"><b>{prose(s.title) || "Untitled"}</b>{got && <> belongs to {visible(got.owner)}</>}</p>
      {got && got.shares.length > 0 && (
        <ul class="people-list" aria-label="With whom it is shared">
          {got.shares.map((x) => (
            <li key={x.user}>
              <span class="name">{visible(x.user)}</span>
              <select aria-label={"Role of " + visible(x.user)} value={x.role} onChange={(e) => void call({ user: x.user, role: e.currentTarget.value })}>{choices}</select>
              <button aria-label={`Remove ${visible(x.user)}`} onClick={() => void call({ user: x.user, role: "none" })}>Remove</button>
            </li>
          ))}
        </ul>
      )}
      {got && got.shares.length === 0 && <p class="about">It is shared with nobody.</p>}
      <form class="form" onSubmit={add}>
        <label>User <input value={user} onInput={(e) => setUser(e.currentTarget.value)} required autofocus spellcheck={false} autocapitalize="off" autocomplete="off" /></label>
        <label>Role <select value={role} onChange={(e) => setRole(e.currentTarget.value)}>{choices}</select></label>
        <p class="about">{role === "owner" ? "An" : role === "approver" ? "An" : "A"} {role} {roles.find(([r]) => r === role)?.[1]}. The agent works with the rights of {got ? visible(got.owner) : "the owner"}, whoever sends the prompt.</p>
        <p class="bad" role="alert">{wrong}</p>
        <div class="buttons"><button class="primary" disabled={!user.trim()}>Share</button></div>
      </form>
      {here.length > 0 && <><h3>Here now</h3><ul class="people-list">{here.map((p, i) => <li key={i}><span class="name">{visible(p.name)}{p.you && " (you)"}</span> <span class="about">{p.role}</span></li>)}</ul></>}
    </Modal>
  );
}
