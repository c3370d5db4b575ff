import { useLayoutEffect, useRef } from "preact/hooks";
import { actionsOf } from "../actions";
import type { Page } from "../page";
import type { Session } from "../sessions";
import { prose } from "../parts/text";

// MenuButton opens the menu of a session.
export function MenuButton({ page, id, title }: { page: Page; id: string; title: string }) {
  const open = page.menu.value?.id === id && page.menu.value.at.isConnected;
  return (
    <button class="menu-button" aria-haspopup="menu" aria-expanded={open} aria-label={`Actions of ${title}`} title="Actions (m)" onClick={(e) => { page.menu.value = { id, at: e.currentTarget }; }}>⋯</button>
  );
}

// Menu has what can be done with the session whose menu is open.
export function Menu({ page }: { page: Page }) {
  const menu = page.menu.value, s = menu && page.sessions.get(menu.id);
  return menu && s ? <Items key={menu.id} page={page} s={s} at={menu.at} /> : null;
}

function Items({ page, s, at }: { page: Page; s: Session; at: HTMLElement }) {
  const box = useRef<HTMLUListElement>(null);
  const actions = actionsOf(page, s);
  const items = () => [...(box.current?.querySelectorAll<HTMLElement>("button") ?? [])];
  const shut = () => { page.menu.value = null; };
  useLayoutEffect(() => {
    const b = box.current!;
    b.showPopover();
    // It is where there is room for it.
    const from = at.getBoundingClientRect(), size = b.getBoundingClientRect();
    b.style.left = Math.max(8, Math.min(from.right - size.width, innerWidth - size.width - 8)) + "px";
    b.style.top = Math.max(8, from.bottom + size.height + 8 > innerHeight ? from.top - size.height - 4 : from.bottom + 4) + "px";
    items()[0]?.focus();
    const closed = (e: Event) => { if ((e as ToggleEvent).newState === "closed") shut(); };
    b.addEventListener("toggle", closed);
    addEventListener("resize", shut);
    return () => {
      b.removeEventListener("toggle", closed);
      removeEventListener("resize", shut);
      if (at.isConnected && (document.activeElement === document.body || b.contains(document.activeElement))) at.focus();
    };
  }, []);
  const key = (e: KeyboardEvent) => {
    const all = items(), i = all.indexOf(document.activeElement as HTMLElement);
    const go = (n: number) => all[(n + all.length) % all.length]?.focus();
    switch (e.key) {
      case "ArrowDown": go(i + 1); break;
      case "ArrowUp": go(i - 1); break;
      case "Home": go(0); break;
      case "End": go(-1); break;
      case "Tab": case "Escape": shut(); break;
      default: {
        const n = actions.findIndex((a) => a.key === e.key);
        if (n < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
        choose(n);
      }
    }
    e.preventDefault();
    e.stopPropagation();
  };
  const choose = (n: number) => {
    at.focus(); // where the focus returns to from a dialog
    shut();
    actions[n].act();
  };
  return (
    <ul class="menu" role="menu" aria-label={"Actions of " + (prose(s.title) || "Untitled")} popover="auto" ref={box} onKeyDown={key}>
      {actions.map((a, n) => (
        <li key={a.name} role="none"><button role="menuitem" tabIndex={-1} class={a.danger ? "danger" : ""} aria-keyshortcuts={a.key} onClick={() => choose(n)}><span>{a.name}</span><kbd aria-hidden="true">{a.key}</kbd></button></li>
      ))}
    </ul>
  );
}
