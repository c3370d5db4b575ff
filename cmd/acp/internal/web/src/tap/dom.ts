// Making elements. Nothing here or elsewhere makes markup of text: what agents and clients say only ever becomes the text
// of a node.

/** Child is what an element may have in it; null and false are nothing. */
export type Child = Node | string | null | undefined | false;

// What an attribute may be. What begins with on is a handler of events.
type Attributes = { [name: string]: string | number | boolean | null | undefined | ((e: Event) => void) };

/** el makes an element: el("p.note", {title: "x"}, "text", child). */
export function el(what: string, attributes?: Attributes | null, ...children: Child[]): HTMLElement {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag!);
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, String(value));
  }
  node.append(...children.filter((c) => c != null && c !== false));
  return node;
}

/** byId returns an element of the document, which has it. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** setText changes a text only where it is another one. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** on listens to the events of a part of the page. */
export function on<T = undefined>(source: EventTarget, name: string, f: (detail: T) => void): void {
  source.addEventListener(name, (e) => f((e as CustomEvent<T>).detail));
}

let speech = 0;

/** say tells people who cannot see the page what has changed. */
export function say(text: string): void {
  clearTimeout(speech);
  speech = window.setTimeout(() => setText(byId("live"), text), 150);
}
