// A list of any length of which only what is in sight is in the document.

const spare = 8; // rows above and below

export class List {
  // scroller is what scrolls, sizer has the height of all rows. make returns a new
  // row, fill writes the i-th into it.
  constructor(scroller, sizer, {height, make, fill, scrolled}) {
    Object.assign(this, {scroller, sizer, height, make, fill, scrolled});
    this.count = 0;
    this.free = [];
    this.used = new Map(); // by index
    scroller.addEventListener('scroll', () => this.later(), {passive: true});
    new ResizeObserver(() => this.later()).observe(scroller);
  }

  // later draws before the next frame.
  later() {
    this.due ||= requestAnimationFrame(() => {
      this.due = 0;
      this.draw();
      this.scrolled?.();
    });
  }

  // resize tells that there are other rows now, or that they look different.
  resize(count) {
    this.count = count;
    const height = count * this.height + 'px';
    if (this.sizer.style.height !== height) this.sizer.style.height = height;
    this.stale = true;
    this.later();
  }

  draw() {
    const top = this.scroller.scrollTop, seen = this.scroller.clientHeight;
    if (seen === 0) return; // it is not shown
    const from = Math.max(0, Math.floor(top / this.height) - spare);
    const to = Math.min(this.count, Math.ceil((top + seen) / this.height) + spare);
    for (const [i, node] of this.used) {
      if (i < from || i >= to) {
        this.used.delete(i);
        this.free.push(node);
      }
    }
    for (let i = from; i < to; i++) {
      let node = this.used.get(i);
      if (node && !this.stale) continue;
      if (!node) {
        node = this.free.pop() || this.sizer.appendChild(this.make());
        node.style.transform = 'translateY(' + i * this.height + 'px)';
        node.hidden = false;
        this.used.set(i, node);
      }
      this.fill(node, i);
    }
    for (const node of this.free) if (!node.hidden) {
      node.hidden = true;
      node.removeAttribute('id');
    }
    this.stale = false;
  }

  get page() { return Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 1); }
  get atEnd() { return this.scroller.scrollTop + this.scroller.clientHeight >= this.count * this.height - this.height / 2; }

  toEnd() { this.scroller.scrollTop = this.count * this.height; }

  // show scrolls as little as needed for a row to be in sight, or to the middle.
  show(i, middle) {
    const y = i * this.height, top = this.scroller.scrollTop, seen = this.scroller.clientHeight;
    if (y >= top && y + this.height <= top + seen) return;
    if (middle) this.scroller.scrollTop = y - seen / 2;
    else if (y < top) this.scroller.scrollTop = y;
    else this.scroller.scrollTop = y + this.height - seen;
  }

  // shift keeps what is in sight where it is when rows before it go.
  shift(rows) { this.scroller.scrollTop -= rows * this.height; }
}
