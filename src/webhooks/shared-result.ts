/**
 * An answer that must not be older than the question, given once to all who ask together: who asks while one is under way gets the
 * next, with everyone else who does.
 */
export class SharedResult<Answer> {
  private underWay: Promise<Answer> | undefined;
  private next: Promise<Answer> | undefined;

  constructor(private readonly find: () => Promise<Answer>) {}

  ask(): Promise<Answer> {
    if (!this.underWay) return this.begin();
    const begin = (): Promise<Answer> => this.begin();
    return (this.next ??= this.underWay.then(begin, begin));
  }

  private begin(): Promise<Answer> {
    this.next = undefined;
    const found = this.find();
    this.underWay = found;
    const end = (): void => {
      if (this.underWay === found && !this.next) this.underWay = undefined;
    };
    found.then(end, end);
    return found;
  }
}
