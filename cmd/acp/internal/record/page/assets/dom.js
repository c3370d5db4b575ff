// Making elements. Nothing here or elsewhere makes markup of text: what agents and
// clients say only ever becomes the text of a node.

// el makes an element: el('p.note', {title: 'x'}, 'text', child).
export function el(what, attributes, ...children) {
  const [tag, ...classes] = what.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((c) => c != null && c !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

// setText changes a text only where it is another one.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let speech = 0;

// say tells people who cannot see the page what has changed.
export function say(text) {
  clearTimeout(speech);
  speech = setTimeout(() => setText(byId('live'), text), 150);
}
