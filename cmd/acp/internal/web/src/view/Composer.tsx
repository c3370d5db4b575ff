import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ContentBlock } from "@agentclientprotocol/sdk/experimental/v2";
import { attach, filesOf, maxAttachments, mentioned, mentionsOf, release, sizeOf, type Attachment } from "../attach";
import { commandsFor, Files, hintOf, mentionAt, offered, type Choice } from "../complete";
import { textOf, type Conversation } from "../conversation";
import { draftOf, keepDraft, keepPrompt, prompts } from "../drafts";
import { reasonOf } from "../link";
import type { Page } from "../page";
import { say } from "../say";
import { prose, visible } from "../parts/text";

const settled = 300; // ms after which a draft is kept
const thinking = 60; // ms after which files are asked for

const grows = CSS.supports("field-sizing", "content"); // the field is as high as its text by itself

// touch says whether there is no keyboard with a Shift key, most likely: Enter begins a line there.
const touch = () => matchMedia("(hover: none) and (pointer: coarse)").matches;

// Composer is where prompts are written.
export function Composer({ page, talk }: { page: Page; talk: Conversation }) {
  if (talk.failed.value && !talk.role.value) return null; // there is no session to write to
  return talk.role.value === "viewer" ? <p class="watch">You only watch.</p> : <Writing page={page} talk={talk} />;
}

function Writing({ page, talk }: { page: Page; talk: Conversation }) {
  const area = useRef<HTMLTextAreaElement>(null), picker = useRef<HTMLInputElement>(null);
  const { text, caret, files, write } = useDraft(page, talk, area);
  const attachments = useAttachments(page);
  const past = usePast(page, talk);
  const offer = useOffer(page, talk, text, caret);
  const busy = talk.busy.value, empty = !text.trim() && attachments.list.length === 0;

  const list = talk.fold.value.suggestions.value, [unwanted, dismiss] = useState<unknown>(null);
  const suggestion = busy || text || attachments.list.length > 0 || unwanted === list ? "" : offered(list);
  const accept = () => {
    write(suggestion, suggestion.length, []);
    area.current?.focus();
  };

  const cwd = page.sessions.get(talk.id)?.cwd ?? talk.cwd;
  const send = (how: "prompt" | "stop" | "steer") => {
    if (empty || attachments.reading) return;
    const content: ContentBlock[] = text.trim() ? [{ type: "text", text }] : [];
    content.push(...mentioned(text, files, cwd), ...attachments.list.map((a) => a.block));
    keepPrompt(text);
    past.reset();
    dismiss(list);
    attachments.clear();
    write("", 0, []);
    if (how === "stop") void talk.cancel().then(() => talk.prompt(content));
    else if (how === "steer") void talk.steer(content);
    else talk.prompt(content);
    area.current?.focus();
  };
  const choose = (c: Choice) => write(text.slice(0, c.from) + c.text + text.slice(caret).replace(/^ /, c.text.endsWith(" ") ? "" : " "), c.from + c.text.length, c.file ? [...files, c.file] : files);
  const key = (e: KeyboardEvent) => {
    if (e.isComposing) return;
    if (offer.list.length > 0 && offer.key(e, choose)) return e.preventDefault();
    if (suggestion && !e.shiftKey && !e.altKey && !e.ctrlKey && !e.metaKey) {
      if (e.key === "Tab") accept();
      if (e.key === "Escape") dismiss(list);
      if (e.key === "Tab" || e.key === "Escape") return e.preventDefault();
    }
    if ((e.key === "ArrowUp" || e.key === "ArrowDown") && !e.shiftKey && !e.altKey && !e.ctrlKey && !e.metaKey) {
      const other = past.step(e.key === "ArrowUp" ? -1 : 1, text);
      if (other === null) return;
      write(other, other.length, files);
      return e.preventDefault();
    }
    if (e.key.toLowerCase() === "s" && (e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey) {
      e.preventDefault(); // or else the browser would save the page
      return send("steer");
    }
    if (e.key !== "Enter" || e.shiftKey || e.altKey) return;
    const now = (e.ctrlKey || e.metaKey) && busy;
    if (touch() && !e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    send(now ? "stop" : "prompt");
  };
  const taken = talk.outbox.taken.value;
  useEffect(() => {
    if (taken.length === 0) return;
    talk.outbox.taken.value = [];
    const content = taken.flatMap((s) => s.content), old = taken.map((s) => textOf(s.content)).filter((t) => t.trim()).join("\n\n");
    write([old, text].filter((t) => t.trim()).join("\n\n"), old.length, [...files, ...mentionsOf(content, old, cwd)]);
    void attachments.add(filesOf(content)).then(() => taken.forEach((s) => talk.outbox.remove(s.operationId)));
    say(taken.length === 1 ? "The prompt is in the field again" : "The prompts are in the field again");
    area.current?.focus();
  }, [taken]);
  const hint = hintFor(talk, text);
  useLayoutEffect(() => {
    const a = area.current;
    if (!a || grows) return;
    a.style.height = "auto";
    a.style.height = a.scrollHeight + 2 + "px";
  }, [text]);
  const open = offer.list.length > 0;
  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); send("prompt"); }}>
      {open && <Offers list={offer.list} at={offer.at} choose={(c) => { choose(c); area.current?.focus(); }} />}
      {attachments.list.length > 0 && <Attached list={attachments.list} remove={(a) => { attachments.remove(a); area.current?.focus(); }} />}
      {attachments.wrong.length > 0 && <div class="bad wrongs" role="alert">{attachments.wrong.map((w) => <p key={w}>{w}</p>)}</div>}
      {hint && <p class="hint" id="prompt-hint">{hint}</p>}
      {suggestion && (touch()
        ? <button type="button" class="suggestion" onClick={accept}>{suggestion}</button>
        : <p class="hint" id="prompt-hint">Tab takes the suggestion, Esc hides it.</p>)}
      <div class="writing">
        <button type="button" class="plus" title="Add pictures or files" aria-label="Add pictures or files" onClick={() => picker.current?.click()}>+</button>
        <input ref={picker} type="file" multiple hidden aria-hidden="true" tabIndex={-1} onChange={(e) => { attachments.add([...(e.currentTarget.files ?? [])]); e.currentTarget.value = ""; }} />
        <textarea
          id="prompt" ref={area} rows={1} value={text} placeholder={suggestion && !touch() ? suggestion : "Write a prompt"} aria-label="Prompt" autocapitalize="sentences"
          enterkeyhint={touch() ? "enter" : "send"} aria-describedby={hint || suggestion ? "prompt-hint" : undefined} aria-autocomplete="list"
          aria-controls={open ? "offers" : undefined} aria-haspopup={open ? "listbox" : undefined}
          aria-activedescendant={open ? "offer-" + offer.at : undefined}
          onInput={(e) => { past.reset(); write(e.currentTarget.value, e.currentTarget.selectionStart, files); }}
          onSelect={(e) => write(e.currentTarget.value, e.currentTarget.selectionStart, files)}
          onBlur={() => offer.shut()} onKeyDown={key}
          onPaste={(e) => {
            const pasted = [...(e.clipboardData?.files ?? [])];
            if (pasted.length === 0 || e.clipboardData?.types.includes("text/plain")) return;
            e.preventDefault();
            attachments.add(pasted);
          }}
        />
        {busy && <button type="button" class="stop" aria-keyshortcuts="Control+." title="Stop (Ctrl+.)" onClick={() => void talk.cancel()}>Stop</button>}
        {busy && !empty && <button type="button" aria-keyshortcuts="Control+Enter" title="Stop what runs, and send this (Ctrl+Enter)" disabled={attachments.reading} onClick={() => send("stop")}>Stop and send</button>}
        {busy && !empty && <button type="button" aria-keyshortcuts="Control+S" title="Give this to the turn that runs (Ctrl+S)" disabled={attachments.reading} onClick={() => send("steer")}>Send now</button>}
        <button class="primary" disabled={empty || attachments.reading}>{attachments.reading ? "Reading …" : busy ? "Queue" : "Send"}</button>
      </div>
    </form>
  );
}

// hintFor returns what the command expects that was written, while nothing follows it.
function hintFor(talk: Conversation, text: string): string {
  const name = /^\/(\S+)\s$/.exec(text)?.[1];
  const command = name && talk.fold.value.commands.value.find((c) => c.name === name);
  const hint = command && hintOf(command);
  return hint ? visible(`/${name} ${hint}`) : "";
}

// useDraft is what has been written. It outlives the page.
function useDraft(page: Page, talk: Conversation, area: { current: HTMLTextAreaElement | null }) {
  const [draft, set] = useState(() => {
    const d = draftOf(talk.id);
    return { ...d, caret: d.text.length };
  });
  const latest = useRef(draft), kept = useRef(draft.text), place = useRef<number | null>(null);
  latest.current = draft;
  const keep = () => {
    const { text, files } = latest.current;
    if (text === kept.current || page.link.state.peek() === "refused") return;
    kept.current = text;
    keepDraft(talk.id, { text, files });
  };
  useEffect(() => {
    const timer = setTimeout(keep, settled);
    return () => clearTimeout(timer);
  }, [draft.text]);
  useEffect(() => {
    addEventListener("pagehide", keep);
    return () => {
      removeEventListener("pagehide", keep);
      keep();
    };
  }, []);
  // The caret is where a choice has put it.
  useLayoutEffect(() => {
    if (place.current === null) return;
    area.current?.setSelectionRange(place.current, place.current);
    place.current = null;
  });
  const write = (text: string, caret: number, files: string[]) => {
    if (area.current && area.current.value !== text) place.current = caret;
    set((d) => (d.text === text && d.caret === caret && d.files === files ? d : { text, caret, files }));
  };
  return { ...draft, write };
}

// usePast is what was sent before: from this browser, and by this user in this session.
function usePast(page: Page, talk: Conversation) {
  const state = useRef<{ list: string[]; at: number } | null>(null);
  return {
    reset: () => { state.current = null; },
    // step returns an earlier prompt, or a later one. It is null if the key means something else.
    step: (by: number, text: string): string | null => {
      if (!state.current) {
        if (text !== "" || by > 0) return null;
        const own = talk.prompts();
        state.current = { list: [...prompts().filter((p) => !own.includes(p)), ...own], at: -1 };
        state.current.at = state.current.list.length;
      }
      const s = state.current, at = s.at + by;
      if (at < 0 || at > s.list.length) return null;
      s.at = at;
      if (at === s.list.length) {
        state.current = null;
        return "";
      }
      return s.list[at];
    },
  };
}

// useOffer is what is offered at the caret.
function useOffer(page: Page, talk: Conversation, text: string, caret: number) {
  const [files] = useState(() => new Files(page.link, talk.id));
  const [found, setFound] = useState<{ list: Choice[]; from: number; query: string }>({ list: [], from: -1, query: "" });
  const [at, setAt] = useState(0);
  const [shut, setShut] = useState("");
  const commands = talk.fold.value.commands.value;
  const mention = mentionAt(text, caret);
  useEffect(() => {
    if (!mention) return setFound((f) => (f.from < 0 ? f : { list: [], from: -1, query: "" }));
    let stale = false;
    const timer = setTimeout(async () => {
      const list = await files.find(mention.query, mention.from);
      if (!stale) setFound({ list, from: mention.from, query: mention.query });
    }, thinking);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [mention?.from, mention?.query]);
  const here = `${text}\n${caret}`;
  // What was found for an earlier query is offered only as far as it fits this one.
  const fits = (c: Choice) => found.query === mention?.query || c.label.toLowerCase().includes(mention!.query.toLowerCase());
  const list = shut === here ? [] : mention ? (found.from === mention.from ? found.list.filter(fits) : []) : commandsFor(commands, text, caret);
  const names = list.map((c) => c.label).join("\n");
  useEffect(() => {
    setAt(0);
    if (list.length > 0) say(`${list.length} ${list.length === 1 ? "choice" : "choices"}`);
  }, [names]);
  const now = Math.min(at, Math.max(0, list.length - 1));
  return {
    list, at: now,
    shut: () => setShut(here),
    // key acts on a key, and reports whether it did.
    key: (e: KeyboardEvent, choose: (c: Choice) => void): boolean => {
      if (e.shiftKey || e.ctrlKey || e.metaKey || e.altKey) return false;
      switch (e.key) {
        case "ArrowDown": setAt((now + 1) % list.length); return true;
        case "ArrowUp": setAt((now + list.length - 1) % list.length); return true;
        case "Escape": setShut(here); return true;
        case "Tab": choose(list[now]); return true;
        case "Enter":
          // The command is there already: Enter sends it.
          if (!list[now].file && text.trim() === list[now].label) return false;
          choose(list[now]);
          return true;
      }
      return false;
    },
  };
}

function Offers({ list, at, choose }: { list: Choice[]; at: number; choose: (c: Choice) => void }) {
  const box = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => box.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <ul id="offers" class="offers" role="listbox" aria-label={list[0].file ? "Files" : "Commands"} ref={box}>
      {list.map((c, i) => (
        // The field keeps the focus.
        <li key={c.label} id={"offer-" + i} role="option" aria-selected={i === at} onMouseDown={(e) => e.preventDefault()} onClick={() => choose(c)}>
          <span class="name">{visible(c.label)}</span> {c.hint && <span class="expects">{visible(c.hint)}</span>} {c.about && <span class="about">{prose(c.about)}</span>}
        </li>
      ))}
    </ul>
  );
}

// useAttachments is what will be sent beside the text.
function useAttachments(page: Page) {
  const [list, set] = useState<Attachment[]>([]);
  const [wrong, setWrong] = useState<string[]>([]);
  const [reading, count] = useState(0);
  const all = useRef(list), coming = useRef(0);
  all.current = list;
  const add = async (files: File[]) => {
    const takes = page.link.known.value?.capabilities?.session?.prompt ?? {};
    const refused: string[] = [];
    setWrong([]);
    count((n) => n + 1);
    for (const f of files) {
      if (all.current.length + coming.current >= maxAttachments) {
        refused.push(`A prompt has ${maxAttachments} pictures and files at most: ${f.name} was not added.`);
        continue;
      }
      coming.current++;
      try {
        const a = await attach(f, takes);
        all.current = [...all.current, a];
        set(all.current);
        say(`${a.name} was added`);
      } catch (err) {
        refused.push(reasonOf(err));
      } finally {
        coming.current--;
      }
    }
    setWrong(refused);
    count((n) => n - 1);
  };
  const adding = useRef(add);
  adding.current = add;
  useEffect(() => {
    const over = (e: DragEvent) => {
      if (!e.dataTransfer?.types.includes("Files")) return;
      e.preventDefault();
      e.dataTransfer.dropEffect = page.dialog.peek() ? "none" : "copy";
    };
    const drop = (e: DragEvent) => {
      if (!e.dataTransfer?.types.includes("Files")) return;
      e.preventDefault(); // or else the browser would open the file
      if (!page.dialog.peek()) void adding.current([...e.dataTransfer.files]);
    };
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
      all.current.forEach(release);
    };
  }, []);
  return {
    list, wrong, reading: reading > 0, add,
    remove: (a: Attachment) => {
      release(a);
      set(all.current.filter((x) => x !== a));
    },
    clear: () => {
      all.current.forEach(release);
      set([]);
      setWrong([]);
    },
  };
}

function Attached({ list, remove }: { list: Attachment[]; remove: (a: Attachment) => void }) {
  return (
    <ul class="attached" aria-label="Pictures and files">
      {list.map((a) => (
        <li key={a.key}>
          {a.picture && <img src={a.picture} alt="" />}
          <span class="name" title={visible(a.name)}>{visible(a.name)}</span> <span class="size">{sizeOf(a.size)}</span>
          <button type="button" aria-label={"Remove " + visible(a.name)} title="Remove" onClick={() => remove(a)}>×</button>
        </li>
      ))}
    </ul>
  );
}
