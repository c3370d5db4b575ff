// Reading JSON so that it can be shown as it was: numbers keep all their digits,
// and members that come twice are there twice, which JSON.parse does not do.

const deepest = 200;

// parse returns the value of a text: {kind, raw} of a string, number or word, or
// {kind: 'object' | 'array', items: [{key, value}]}. It throws if it is not JSON.
export function parse(text) {
  const token = /[ \t\n\r]*(?:([{}\[\],:])|(")|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null))/y;
  let mark = '', raw = '', kind = '';
  const next = () => {
    const m = token.exec(text);
    if (!m) throw new SyntaxError('not JSON');
    mark = m[1] || '';
    raw = m[3] || m[4] || '';
    kind = m[2] ? 'string' : m[3] ? 'number' : 'word';
    if (m[2]) {
      const start = token.lastIndex - 1;
      token.lastIndex = closing(text, start);
      raw = text.slice(start, token.lastIndex);
    }
  };
  const value = (depth) => {
    if (raw) return {kind, raw};
    if (depth > deepest || mark !== '{' && mark !== '[') throw new SyntaxError('not JSON, or too deep');
    const object = mark === '{', end = object ? '}' : ']', items = [];
    next();
    while (mark !== end) {
      let key;
      if (object) {
        if (kind !== 'string' || !raw) throw new SyntaxError('not JSON');
        key = raw;
        next();
        if (mark !== ':') throw new SyntaxError('not JSON');
        next();
      }
      items.push({key, value: value(depth + 1)});
      next();
      if (mark === ',') {
        next();
        if (mark === end) throw new SyntaxError('not JSON');
      } else if (mark !== end) throw new SyntaxError('not JSON');
    }
    return {kind: object ? 'object' : 'array', items};
  };
  next();
  const v = value(0);
  if (text.slice(token.lastIndex).trim() !== '') throw new SyntaxError('not JSON');
  return v;
}

// closing returns where a string ends that begins at i. A pattern would run out of
// stack in a long one.
function closing(text, i) {
  for (let end = text.indexOf('"', i + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let n = 0;
    while (text[end - 1 - n] === '\\') n++;
    if (n % 2 === 0) return end + 1;
  }
  throw new SyntaxError('not JSON');
}

// decode returns what a string says.
export function decode(raw) {
  try {
    return JSON.parse(raw);
  } catch {
    return raw.slice(1, -1);
  }
}
