import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

// Modal is a dialog over the page. The browser keeps the focus in it. Afterwards it returns to where it was.
export function Modal({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const at = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    at.current?.showModal();
    // Nothing outside of it can have the focus before it has gone.
    return () => queueMicrotask(() => { if (before?.isConnected && document.activeElement === document.body) before.focus(); });
  }, []);
  return (
    <dialog ref={at} class="modal" aria-labelledby="modal-title" onClose={close} onCancel={close} onClick={(e) => { if (at.current && e.target === at.current && outside(e, at.current)) close(); }}>
      <header>
        <h2 id="modal-title">{title}</h2>
        <button type="button" aria-label="Close" onClick={close}>×</button>
      </header>
      {children}
    </dialog>
  );
}

// outside reports whether the backdrop was clicked.
function outside(e: MouseEvent, dialog: HTMLElement): boolean {
  const r = dialog.getBoundingClientRect();
  return e.detail > 0 && (e.clientX < r.left || e.clientX > r.right || e.clientY < r.top || e.clientY > r.bottom);
}
