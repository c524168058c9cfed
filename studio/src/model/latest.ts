/** Runs one job at a time; of those that wait, only the newest. */
export class Latest {
  private wanted: (() => Promise<void>) | undefined;
  private isBusy = false;
  private began = 0;

  /** `stop` ends a job that has run for `patience` milliseconds when a newer one arrives. */
  constructor(
    private readonly stop: () => void,
    private readonly patience: number,
  ) {}

  submit(job: () => Promise<void>): void {
    this.wanted = job;
    if (!this.isBusy) this.drain();
    else if (performance.now() - this.began > this.patience) this.stop();
  }

  private async drain(): Promise<void> {
    this.isBusy = true;
    while (this.wanted) {
      const job = this.wanted;
      this.wanted = undefined;
      this.began = performance.now();
      await job();
    }
    this.isBusy = false;
  }
}
