// Every action by keyboard.

import { signal } from "@preact/signals";
import { isForgotten } from "../forget";
import type { Page } from "../page";

// A Key is one that does something. Those that are letters do nothing while text is being written.
export interface Key {
  shown: string;
  what: string;
  where: Place;
}

export type Place = "Everywhere" | "Sessions" | "Conversation" | "Question" | "Prompt" | "Menu";

export const list: Key[] = [
  { shown: "?", what: "show the keys", where: "Everywhere" },
  { shown: "n", what: "begin a session", where: "Everywhere" },
  { shown: ",", what: "settings and devices", where: "Everywhere" },
  { shown: "m", what: "what can be done with a session: rename, fork, share, export, copy, archive, delete", where: "Everywhere" },
  { shown: "Esc", what: "close what lies over the page; leave the text; on a phone, go to the list", where: "Everywhere" },
  { shown: "Tab", what: "the next thing, and with Shift the one before", where: "Everywhere" },
  { shown: "/", what: "search the sessions", where: "Sessions" },
  { shown: "j  k", what: "open the next session, or the previous one", where: "Sessions" },
  { shown: "l", what: "go to the open session in the list", where: "Sessions" },
  { shown: "c", what: "go to the conversation: ↑ ↓ PgUp PgDn Home End scroll there", where: "Conversation" },
  { shown: "G", what: "go to the end, and stay there", where: "Conversation" },
  { shown: "Ctrl+.", what: "stop what runs", where: "Conversation" },
  { shown: "o", what: "go to the options of the agent: mode, model", where: "Conversation" },
  { shown: "q", what: "go to the question of the agent", where: "Question" },
  { shown: "1 … 9", what: "choose an answer to the first question", where: "Question" },
  { shown: "i", what: "write a prompt", where: "Prompt" },
  { shown: "Enter", what: "send it, or queue it while a turn runs; on a phone, begin a line", where: "Prompt" },
  { shown: "Ctrl+S", what: "give it to the turn that runs; if the agent cannot take it, queue it", where: "Prompt" },
  { shown: "Shift+Enter", what: "begin a line", where: "Prompt" },
  { shown: "Ctrl+Enter", what: "send it; while a turn runs, stop that first", where: "Prompt" },
  { shown: "↑  ↓", what: "in an empty prompt: earlier ones", where: "Prompt" },
  { shown: "Tab", what: "in an empty prompt: take what the agent suggests, without sending it; Esc hides it", where: "Prompt" },
  { shown: "/  @", what: "complete commands and files: ↑ ↓ move, Tab or Enter chooses, Esc closes", where: "Prompt" },
  { shown: "Ctrl+V", what: "paste text, pictures or files", where: "Prompt" },
  { shown: "↑  ↓", what: "move; each entry has a letter of its own, too", where: "Menu" },
];

const lettersKey = "acp.letters";

// letters says whether keys that are characters do something by themselves. Whoever speaks to the browser, or types without
// looking, may not want that.
export const letters = signal(read());

function read(): boolean {
  try {
    return localStorage.getItem(lettersKey) !== "off";
  } catch {
    return true;
  }
}

// chooseLetters changes that, and keeps it for this browser.
export function chooseLetters(on: boolean) {
  letters.value = on;
  try {
    if (on) localStorage.removeItem(lettersKey);
    else if (!isForgotten()) localStorage.setItem(lettersKey, "off");
  } catch {
    // There is no storage.
  }
}

// keys acts on keys until the function that it returns is called.
export function keys(page: Page): () => void {
  const on = (e: KeyboardEvent) => {
    if (e.defaultPrevented || e.isComposing) return;
    const at = e.target as HTMLElement;
    const writes = at.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
    if (e.key === "Escape") {
      if (page.dialog.value) page.dialog.value = "";
      else if (writes) at.blur();
      else if (page.narrow.value) page.go("");
      return;
    }
    if ((e.ctrlKey || e.metaKey) && e.key === "." && !page.dialog.value) {
      void page.open.value?.cancel();
      return e.preventDefault();
    }
    // A digit answers the question that is shown also while nothing is written yet.
    const empty = at.id === "prompt" && (at as HTMLTextAreaElement).value === "" && /^[1-9]$/.test(e.key) && document.querySelector(".ask") !== null;
    if (!letters.value || writes && !empty || page.dialog.value || page.menu.value || e.ctrlKey || e.metaKey || e.altKey) return;
    const shown = [...document.querySelectorAll<HTMLElement>(".rows li[data-id]")].map((li) => li.dataset.id!);
    const all = shown.length > 0 ? shown : page.sessions.list.value.filter((s) => !s.archived).map((s) => s.id);
    const step = (by: number) => {
      const i = all.indexOf(page.route.value);
      const next = all[i < 0 ? 0 : Math.min(Math.max(i + by, 0), all.length - 1)];
      if (next === undefined) return;
      page.go(next);
      document.querySelector(`.rows li[data-id="${CSS.escape(next)}"]`)?.scrollIntoView({ block: "nearest" });
    };
    const focus = (what: string) => document.querySelector<HTMLElement>(what)?.focus();
    switch (e.key) {
      case "?": page.dialog.value = "help"; break;
      case "n": page.dialog.value = "new"; break;
      case ",": page.dialog.value = "settings"; break;
      case "/": focus("#search"); break;
      case "i": focus("#prompt"); break;
      case "c": focus(".scroll"); break;
      case "o": focus(".agent-options select, .agent-options input"); break;
      case "l": focus(".row[aria-current], .row"); break;
      case "q": focus(".ask button, .ask input, .ask select, .ask textarea, .folded button"); break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "m": (at.closest("li[data-id]") ?? document.querySelector(".head") ?? document.querySelector("li[data-id]"))?.querySelector<HTMLElement>(".menu-button")?.click(); break;
      case "G": document.querySelector<HTMLElement>("#latest")?.click(); break;
      default: {
        const n = Number(e.key);
        const shown = document.querySelector<HTMLElement>(".ask"), options = shown?.querySelectorAll<HTMLElement>("[data-answer]") ?? [];
        if (e.repeat || !(n >= 1 && n <= options.length)) return;
        const ask = page.open.value?.asks.value.find((a) => String(a.key) === shown!.dataset.ask);
        if (ask?.kind === "permission") ask.answer(ask.request.options[n - 1].optionId, e.timeStamp); // the click would be a later one
      }
    }
    e.preventDefault();
  };
  addEventListener("keydown", on);
  return () => removeEventListener("keydown", on);
}
