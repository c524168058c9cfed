/** Of the values that arrive while the page draws one, only the newest is drawn. */
export class Newest<T> {
  private waiting: { value: T } | undefined;
  private isDrawing = false;

  /** `drawn` calls back after the page has drawn what `draw` was given. */
  constructor(
    private readonly draw: (value: T) => void,
    private readonly drawn: (after: () => void) => void = afterDrawing,
  ) {}

  offer(value: T): void {
    this.waiting = { value };
    if (!this.isDrawing) this.next();
  }

  /** Forgets the value that waits. */
  drop(): void {
    this.waiting = undefined;
  }

  private next(): void {
    if (!this.waiting) return;
    const { value } = this.waiting;
    this.waiting = undefined;
    this.isDrawing = true;
    this.draw(value);
    this.drawn(() => {
      this.isDrawing = false;
      this.next();
    });
  }
}

/** Waits as long again as the drawing took, so that the page answers its user. */
function afterDrawing(after: () => void): void {
  const began = performance.now();
  requestAnimationFrame(() => setTimeout(() => setTimeout(after, performance.now() - began)));
}
