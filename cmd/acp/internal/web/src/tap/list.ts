// A list of any length of which only what is in sight is in the document.

/** Rows are what a list consists of. */
export interface Rows {
  height: number;
  make(): HTMLElement;
  /** fill writes the i-th row into an element that make returned. */
  fill(node: HTMLElement, i: number): void;
  scrolled(): void;
}

const spare = 8; // rows above and below

/** A List keeps only the rows in the document that are in sight. */
export class List {
  count = 0;
  stale = false;
  private free: HTMLElement[] = [];
  private used = new Map<number, HTMLElement>(); // by index
  private due = 0;

  // scroller is what scrolls, sizer has the height of all rows.
  constructor(private scroller: HTMLElement, private sizer: HTMLElement, private rows: Rows) {
    scroller.addEventListener("scroll", () => this.later(), {passive: true});
    new ResizeObserver(() => this.later()).observe(scroller);
  }

  // later draws before the next frame.
  later(): void {
    this.due ||= requestAnimationFrame(() => {
      this.due = 0;
      this.draw();
      this.rows.scrolled();
    });
  }

  // resize tells that there are other rows now, or that they look different.
  resize(count: number): void {
    this.count = count;
    const height = count * this.rows.height + "px";
    if (this.sizer.style.height !== height) this.sizer.style.height = height;
    this.stale = true;
    this.later();
  }

  draw(): void {
    const top = this.scroller.scrollTop, seen = this.scroller.clientHeight;
    if (seen === 0) return; // it is not shown
    const from = Math.max(0, Math.floor(top / this.rows.height) - spare);
    const to = Math.min(this.count, Math.ceil((top + seen) / this.rows.height) + spare);
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
        node = this.free.pop() || this.sizer.appendChild(this.rows.make());
        node.style.transform = "translateY(" + i * this.rows.height + "px)";
        node.hidden = false;
        this.used.set(i, node);
      }
      this.rows.fill(node, i);
    }
    for (const node of this.free) if (!node.hidden) {
      node.hidden = true;
      node.removeAttribute("id");
    }
    this.stale = false;
  }

  get page(): number { return Math.max(1, Math.floor(this.scroller.clientHeight / this.rows.height) - 1); }
  get atEnd(): boolean { return this.scroller.scrollTop + this.scroller.clientHeight >= this.count * this.rows.height - this.rows.height / 2; }

  toEnd(): void { this.scroller.scrollTop = this.count * this.rows.height; }

  // show scrolls as little as needed for a row to be in sight, or to the middle.
  show(i: number, middle = false): void {
    const y = i * this.rows.height, top = this.scroller.scrollTop, seen = this.scroller.clientHeight;
    if (y >= top && y + this.rows.height <= top + seen) return;
    if (middle) this.scroller.scrollTop = y - seen / 2;
    else if (y < top) this.scroller.scrollTop = y;
    else this.scroller.scrollTop = y + this.rows.height - seen;
  }

  // shift keeps what is in sight where it is when rows before it go.
  shift(rows: number): void { this.scroller.scrollTop -= rows * this.rows.height; }
}
