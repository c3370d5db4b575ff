// What people type into the search.

const fields = ['method', 'id', 'session', 'code'];

// parseQuery returns a function that says whether a row is meant, or null if every
// row is.
export function parseQuery(text) {
  const tests = [];
  for (const [, minus, field, quoted, plain] of text.matchAll(/(-?)(?:(\w+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const word = (quoted ?? plain).toLowerCase();
    if (word === '') continue;
    const test = fields.includes(field) ? in_(field, word) : anywhere((field ? field + ':' : '').toLowerCase() + word);
    tests.push(minus ? (row) => !test(row) : test);
  }
  if (tests.length === 0) return null;
  return (row) => tests.every((test) => test(row));
}

function in_(field, word) {
  return (row) => row[field] != null && String(row[field]).toLowerCase().includes(word) ||
    field === 'method' && (row.update || '').includes(word);
}

function anywhere(word) {
  return (row) => (row.body || '').toLowerCase().includes(word) ||
    (row.method || '').toLowerCase().includes(word) ||
    (row.update || '').includes(word) ||
    (row.summary || '').toLowerCase().includes(word) ||
    (row.session || '').toLowerCase().includes(word) ||
    (row.marks || []).some((f) => (f.rule + ' ' + f.why).toLowerCase().includes(word));
}
