// What this browser keeps: of the sessions that were open last, to be read without a network, and the prompts that the
// gateway has not confirmed, to be sent again. All of it goes with forgetEverything.

import type { ContentBlock, UpdateSessionNotification } from "@agentclientprotocol/sdk/experimental/v2";
import { isForgotten, keeps } from "./forget";
import type { Session } from "./sessions";

const most = 10; // conversations
const updates = 400; // of each
const bytes = 2 << 20; // characters of each, as JSON
const mostSendings = 100;

export interface Kept {
  id: string;
  at: number; // when, in ms since 1970
  items: UpdateSessionNotification[];
}

// A KeptSending is a prompt that is not confirmed.
export interface KeptSending {
  operationId: string;
  session: string;
  made: number; // when it was written, in ms since 1970
  sent: number; // when it was sent first; 0 if it was not
  content: ContentBlock[];
  failed: string;
}

let opened: Promise<IDBDatabase> | undefined;
let gone = false; // the database was deleted, and is not made again by this page

function database(): Promise<IDBDatabase> {
  return (opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const fail = (why: unknown) => {
      opened = undefined;
      reject(why);
    };
    const r = indexedDB.open("acp", 2);
    r.onupgradeneeded = () => {
      for (const name of [...r.result.objectStoreNames]) r.result.deleteObjectStore(name);
      r.result.createObjectStore("conversations", { keyPath: "id" });
      r.result.createObjectStore("lists");
      r.result.createObjectStore("sendings", { keyPath: "operationId" });
    };
    let late = false;
    r.onblocked = () => { // a tab with an older page holds it
      late = true;
      fail(new Error("blocked"));
    };
    r.onsuccess = () => {
      const db = r.result;
      if (late || isForgotten() || gone) {
        db.close();
        return fail(new Error("too late"));
      }
      db.onversionchange = (e) => {
        gone = e.newVersion === null; // another tab forgets
        db.close();
        opened = undefined;
      };
      db.onclose = () => { opened = undefined; };
      resolve(db);
    };
    r.onerror = () => fail(r.error);
  }));
}

function done<T>(r: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    r.onsuccess = () => resolve(r.result);
    r.onerror = () => reject(r.error);
  });
}

// Browsers may refuse to keep anything: then there is nothing.
const attempt = async <T>(f: (db: IDBDatabase) => Promise<T>, otherwise: T): Promise<T> => {
  try {
    if (isForgotten() || gone) return otherwise;
    const db = await database();
    return isForgotten() || gone ? otherwise : await f(db);
  } catch {
    return otherwise;
  }
};

keeps(async () => {
  const db = await opened?.catch(() => undefined);
  db?.close();
  opened = undefined;
  await new Promise((resolve) => {
    const r = indexedDB.deleteDatabase("acp");
    r.onsuccess = r.onerror = r.onblocked = resolve; // it is deleted as soon as nobody holds it
  });
});

// keepList keeps the list of sessions.
export const keepList = (list: Session[]) => attempt(async (db) => {
  await done(db.transaction("lists", "readwrite").objectStore("lists").put(list.slice(0, 100), "sessions"));
}, undefined);

export const keptList = () => attempt(async (db) => ((await done(db.transaction("lists").objectStore("lists").get("sessions"))) ?? []) as Session[], []);

// keep keeps the end of a conversation.
export const keep = (id: string, items: UpdateSessionNotification[]) => attempt(async (db) => {
  let tail = items.slice(-updates);
  while (tail.length > 0 && JSON.stringify(tail).length > bytes) tail = tail.slice(Math.ceil(tail.length / 2));
  const store = db.transaction("conversations", "readwrite").objectStore("conversations");
  const isNew = (await done(store.getKey(id))) === undefined;
  await done(store.put({ id, at: Date.now(), items: tail } satisfies Kept));
  if (!isNew) return; // there are not more than before
  const all = (await done(store.getAll())) as Kept[];
  all.sort((a, b) => b.at - a.at);
  for (const old of all.slice(most)) await done(store.delete(old.id));
}, undefined);

export const kept = (id: string) => attempt(async (db) => (await done(db.transaction("conversations").objectStore("conversations").get(id))) as Kept | undefined, undefined);

// keepSending keeps a prompt, and forgets the oldest ones beyond the bound.
export const keepSending = (s: KeptSending) => attempt(async (db) => {
  const store = db.transaction("sendings", "readwrite").objectStore("sendings");
  await done(store.put(s));
  if ((await done(store.count())) <= mostSendings) return;
  const all = (await done(store.getAll())) as KeptSending[];
  all.sort((a, b) => b.made - a.made);
  for (const old of all.slice(mostSendings)) await done(store.delete(old.operationId));
}, undefined);

export const dropSending = (operationId: string) => attempt(async (db) => {
  await done(db.transaction("sendings", "readwrite").objectStore("sendings").delete(operationId));
}, undefined);

// keptSendings returns those that are kept, in the order in which they were written.
export const keptSendings = () => attempt(async (db) => {
  const all = (await done(db.transaction("sendings").objectStore("sendings").getAll())) as KeptSending[];
  return all.sort((a, b) => a.made - b.made);
}, []);
