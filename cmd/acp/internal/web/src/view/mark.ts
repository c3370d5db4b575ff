// Where somebody reads in an entry, by its text. What an entry begins with may be fetched later, or not be kept any more, and
// what it ends with may grow meanwhile: then neither its top nor its bottom stays where it is.

const most = 120; // characters by which a place is found again
const least = 8; // of these, if what follows has changed

// A Mark is a place in an entry: the text that begins there, where that is in the text of the entry, and how far it is below
// the top of the view. An entry without text has its bottom for a place.
export interface Mark {
  text: string;
  at: number;
  length: number; // of the text of the entry
  offset: number; // px
}

// mark returns the first place of an entry that is in view below top.
export function mark(entry: HTMLElement, top: number): Mark {
  const all = texts(entry), { text } = all;
  let place = 0;
  if (text.length > 0) { // lines follow each other downwards, as far as it matters here
    let end = text.length - 1;
    while (place < end) {
      const middle = (place + end) >> 1;
      if (all.rect(middle).bottom > top) end = middle;
      else place = middle + 1;
    }
  }
  return { text: text.slice(place, place + most), at: place, length: text.length, offset: all.rect(place)[edge(text)] - top };
}

// marked returns where the place of a mark is now, in px.
export function marked(entry: HTMLElement, m: Mark): number {
  const all = texts(entry), { text } = all;
  return all.rect(find(text, m))[edge(text)];
}

const edge = (text: string) => (text.length > 0 ? "top" : "bottom");

// find returns where the text of a mark is: of several places the one that is as far from the end as before.
function find(text: string, m: Mark): number {
  const wanted = Math.max(0, Math.min(m.at + text.length - m.length, text.length - 1));
  for (let n = m.text.length; n >= least; n >>= 1) {
    const part = m.text.slice(0, n), before = text.lastIndexOf(part, wanted), after = text.indexOf(part, wanted);
    if (before < 0 && after < 0) continue;
    return after < 0 || before >= 0 && wanted - before < after - wanted ? before : after;
  }
  return wanted;
}

// texts returns the text of an entry, and where a character of it is.
function texts(entry: HTMLElement): { text: string; rect: (at: number) => DOMRect } {
  const nodes: Text[] = [], starts: number[] = [];
  let text = "";
  for (const w = document.createTreeWalker(entry, NodeFilter.SHOW_TEXT); w.nextNode(); ) {
    nodes.push(w.currentNode as Text);
    starts.push(text.length);
    text += (w.currentNode as Text).data;
  }
  const range = document.createRange();
  const rect = (at: number): DOMRect => {
    let i = 0, end = nodes.length - 1;
    while (i < end) { // the last one that begins there or before
      const middle = (i + end + 1) >> 1;
      if (starts[middle] <= at) i = middle;
      else end = middle - 1;
    }
    for (let from = at - starts[i]; i < nodes.length; i++, from = 0) {
      for (; from < nodes[i].data.length; from++) {
        range.setStart(nodes[i], from);
        range.setEnd(nodes[i], from + 1);
        if (range.getClientRects().length > 0) return range.getBoundingClientRect();
        if (/\S/.test(nodes[i].data[from])) break; // it is in something that is closed, and not just a space between lines
      }
    }
    return entry.getBoundingClientRect();
  };
  return { text, rect };
}
