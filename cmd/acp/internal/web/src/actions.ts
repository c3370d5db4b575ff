// What can be done with a session.

import { methods } from "@agentclientprotocol/sdk/experimental/v2";
import { reasonOf } from "./link";
import { own } from "./meta";
import type { Page } from "./page";
import type { Session } from "./sessions";
import { say } from "./say";

// An Action is an entry of the menu of a session.
export interface Action {
  name: string;
  key: string; // what chooses it while the menu is open
  danger?: boolean;
  act: () => void;
}

// actionsOf returns what this user can do with a session.
export function actionsOf(page: Page, s: Session): Action[] {
  const owns = s.role === "" || s.role === "owner"; // it is this user's, or as good as that
  const ask = (dialog: "rename" | "delete" | "share") => () => {
    page.subject.value = s.id;
    page.dialog.value = dialog;
  };
  const list: Action[] = [];
  if (owns) list.push({ name: "Rename …", key: "r", act: ask("rename") });
  list.push({ name: "Fork", key: "f", act: () => void fork(page, s) });
  if (owns) list.push({ name: "Share …", key: "s", act: ask("share") });
  list.push(
    { name: "Export as Markdown", key: "e", act: () => void exportAs(page, s) },
    { name: "Copy link", key: "l", act: () => void copy(page, linkTo(s.id), "The link was copied") },
    { name: "Copy ID", key: "i", act: () => void copy(page, s.id, "The ID was copied") },
  );
  if (owns) list.push(
    s.archived
      ? { name: "Take from the archive", key: "a", act: () => void page.act("session/unarchive", { sessionId: s.id }).then((ok) => { if (ok) page.say("The session is not archived any more."); }) }
      : { name: "Archive", key: "a", act: () => void page.act("session/archive", { sessionId: s.id }).then((ok) => { if (ok) page.say("The session was archived. The list has it at its end."); }) },
    { name: "Delete …", key: "d", danger: true, act: ask("delete") },
  );
  return list;
}

const linkTo = (id: string) => new URL("/#/" + encodeURIComponent(id), location.href).href;

async function copy(page: Page, text: string, done: string) {
  try {
    await navigator.clipboard.writeText(text);
    page.say(done + ".");
  } catch {
    page.say("The browser does not allow that. Here it is: " + text);
  }
}

// fork begins a copy of a session: of all of it, or up to a cursor.
export async function fork(page: Page, s: Pick<Session, "id" | "cwd">, cursorId?: string) {
  try {
    const made = await page.link.request<{ sessionId: string }>("session/fork", { sessionId: s.id, cwd: s.cwd, mcpServers: [], ...(cursorId ? { cursorId } : {}) });
    // This connection is in the new session already: it is left, and resumed as any other one.
    await page.link.request(methods.agent.session.close, { sessionId: made.sessionId }).catch(() => {});
    await page.sessions.load();
    page.go(made.sessionId);
    page.say("This is a new session, which begins with what was said in the other one.");
  } catch (err) {
    page.say("The session cannot be forked: " + reasonOf(err));
  }
}

// remove deletes a session for good.
export async function remove(page: Page, id: string): Promise<string> {
  try {
    await page.link.request(methods.agent.session.delete, { sessionId: id });
  } catch (err) {
    return reasonOf(err);
  }
  if (page.route.value === id) page.go("");
  void page.sessions.load();
  return "";
}

const parted = 128; // parts of an export
// exportAs saves a session as a file, as the gateway writes it.
async function exportAs(page: Page, s: Session) {
  try {
    const parts: string[] = [];
    let from: { offset?: number; cursor?: number } = {};
    say("Exporting");
    for (let i = 0; i < parted; i++) {
      const got: { text: string; next?: number; cursor?: number } = await page.link.request(own("export"), { sessionId: s.id, ...from });
      parts.push(got.text);
      if (got.next === undefined) return save(nameOf(s), parts.join(""));
      from = { offset: got.next, cursor: got.cursor };
    }
    return page.say("The session is too long to be exported here: acp sessions export does it.");
  } catch (err) {
    page.say("The session cannot be exported: " + reasonOf(err));
  }
}

const nameOf = (s: Session) => (s.title || s.id).replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80) + ".md";

function save(name: string, text: string) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
