// QR codes, of ISO/IEC 18004: bytes at level L, in versions 1 to 20, which is up to 858 bytes.

const most = 20; // versions
const perBlock = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28]; // codewords that correct errors
const blockCount = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8];

// codewords returns how many of 8 bits a version has room for.
function codewords(version: number): number {
  let bits = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const n = Math.floor(version / 7) + 2;
    bits -= (25 * n - 10) * n - 55 + (version >= 7 ? 36 : 0);
  }
  return bits >> 3;
}

const room = (version: number) => codewords(version) - perBlock[version - 1] * blockCount[version - 1];

// times multiplies in the field of 256 elements.
function times(x: number, y: number): number {
  let z = 0;
  for (let i = 7; i >= 0; i--) {
    z = (z << 1) ^ ((z >> 7) * 0x11d);
    z ^= ((y >> i) & 1) * x;
  }
  return z;
}

// correction returns n codewords that correct errors in data.
function correction(data: number[], n: number): number[] {
  const divisor = new Array<number>(n).fill(0);
  divisor[n - 1] = 1;
  for (let i = 0, root = 1; i < n; i++, root = times(root, 2)) {
    for (let j = 0; j < n; j++) divisor[j] = times(divisor[j], root) ^ (divisor[j + 1] ?? 0);
  }
  const rest = new Array<number>(n).fill(0);
  for (const b of data) {
    const factor = b ^ rest.shift()!;
    rest.push(0);
    divisor.forEach((d, i) => { rest[i] ^= times(d, factor); });
  }
  return rest;
}

// encode returns the codewords of a text, in the order in which they are drawn.
function encode(bytes: Uint8Array, version: number): number[] {
  const bits: number[] = [];
  const put = (value: number, n: number) => { for (let i = n - 1; i >= 0; i--) bits.push((value >> i) & 1); };
  const size = room(version);
  put(4, 4); // bytes
  put(bytes.length, version < 10 ? 8 : 16);
  bytes.forEach((b) => put(b, 8));
  put(0, Math.min(4, size * 8 - bits.length));
  put(0, -bits.length & 7);
  for (let pad = 0xec; bits.length < size * 8; pad ^= 0xec ^ 0x11) put(pad, 8);
  const data: number[] = [];
  for (let i = 0; i < bits.length; i += 8) data.push(parseInt(bits.slice(i, i + 8).join(""), 2));

  const blocks = blockCount[version - 1], extra = perBlock[version - 1], all = codewords(version);
  const short = blocks - (all % blocks), length = Math.floor(all / blocks) - extra;
  const parts: { data: number[]; extra: number[] }[] = [];
  for (let i = 0, at = 0; i < blocks; i++) {
    const n = length + (i < short ? 0 : 1), d = data.slice(at, at + n);
    parts.push({ data: d, extra: correction(d, extra) });
    at += n;
  }
  const out: number[] = [];
  for (let i = 0; i <= length; i++) for (const p of parts) if (i < p.data.length) out.push(p.data[i]);
  for (let i = 0; i < extra; i++) for (const p of parts) out.push(p.extra[i]);
  return out;
}

const masks: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0, (_, y) => y % 2 === 0, (x) => x % 3 === 0, (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0, (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

// qr returns which modules are dark, row by row, or null if the text is too long.
export function qr(text: string): boolean[][] | null {
  const bytes = new TextEncoder().encode(text);
  let version = 1;
  while (version <= most && bytes.length + (version < 10 ? 2 : 3) > room(version)) version++;
  if (version > most) return null;
  const size = version * 4 + 17;
  const dark = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const fixed = Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const set = (x: number, y: number, on: boolean) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    dark[y][x] = on;
    fixed[y][x] = true;
  };
  for (let i = 0; i < size; i++) {
    set(6, i, i % 2 === 0);
    set(i, 6, i % 2 === 0);
  }
  for (const [cx, cy] of [[3, 3], [size - 4, 3], [3, size - 4]]) {
    for (let dy = -4; dy <= 4; dy++) for (let dx = -4; dx <= 4; dx++) {
      const d = Math.max(Math.abs(dx), Math.abs(dy));
      set(cx + dx, cy + dy, d !== 2 && d !== 4);
    }
  }
  const n = version === 1 ? 0 : Math.floor(version / 7) + 2, step = Math.ceil((version * 4 + 4) / (n * 2 - 2)) * 2;
  const at = Array.from({ length: n }, (_, i) => (i === 0 ? 6 : size - 7 - (n - 1 - i) * step));
  at.forEach((y, i) => at.forEach((x, j) => {
    if ((i === 0 && j === 0) || (i === 0 && j === n - 1) || (i === n - 1 && j === 0)) return;
    for (let dy = -2; dy <= 2; dy++) for (let dx = -2; dx <= 2; dx++) set(x + dx, y + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
  }));
  if (version >= 7) {
    let rest = version;
    for (let i = 0; i < 12; i++) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
    const bits = (version << 12) | rest;
    for (let i = 0; i < 18; i++) {
      const a = size - 11 + (i % 3), b = Math.floor(i / 3), on = ((bits >> i) & 1) === 1;
      set(a, b, on);
      set(b, a, on);
    }
  }
  const format = (mask: number) => {
    const data = (1 << 3) | mask; // level L
    let rest = data;
    for (let i = 0; i < 10; i++) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
    const bits = ((data << 10) | rest) ^ 0x5412, on = (i: number) => ((bits >> i) & 1) === 1;
    for (let i = 0; i <= 5; i++) set(8, i, on(i));
    set(8, 7, on(6));
    set(8, 8, on(7));
    set(7, 8, on(8));
    for (let i = 9; i < 15; i++) set(14 - i, 8, on(i));
    for (let i = 0; i < 8; i++) set(size - 1 - i, 8, on(i));
    for (let i = 8; i < 15; i++) set(8, size - 15 + i, on(i));
    set(8, size - 8, true);
  };
  format(0);
  // The codewords go up and down in columns of two, from the right.
  const data = encode(bytes, version);
  for (let right = size - 1, i = 0; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let v = 0; v < size; v++) for (let j = 0; j < 2; j++) {
      const x = right - j, y = ((right + 1) & 2) === 0 ? size - 1 - v : v;
      if (fixed[y][x] || i >= data.length * 8) continue;
      dark[y][x] = ((data[i >> 3] >> (7 - (i & 7))) & 1) === 1;
      i++;
    }
  }
  const flip = (mask: number) => dark.forEach((row, y) => row.forEach((d, x) => { if (!fixed[y][x]) row[x] = d !== masks[mask](x, y); }));
  let best = 0, least = Infinity;
  for (let mask = 0; mask < 8; mask++) {
    flip(mask);
    format(mask);
    const p = penalty(dark);
    if (p < least) [best, least] = [mask, p];
    flip(mask);
  }
  flip(best);
  format(best);
  return dark;
}

// penalty says how hard a code is to read.
function penalty(dark: boolean[][]): number {
  const size = dark.length;
  let sum = 0, count = 0;
  for (let y = 0; y < size; y++) {
    for (const line of [dark[y].map(Number).join(""), dark.map((row) => Number(row[y])).join("")]) {
      for (const run of line.matchAll(/0{5,}|1{5,}/g)) sum += run[0].length - 2;
      for (let i = 0; i + 11 <= line.length; i++) if (line.startsWith("10111010000", i) || line.startsWith("00001011101", i)) sum += 40;
    }
    for (let x = 0; x < size; x++) {
      if (dark[y][x]) count++;
      if (x + 1 < size && y + 1 < size && dark[y][x] === dark[y][x + 1] && dark[y][x] === dark[y + 1][x] && dark[y][x] === dark[y + 1][x + 1]) sum += 3;
    }
  }
  return sum + Math.floor(Math.abs(count * 20 - size * size * 10) / (size * size)) * 10;
}
