/** What holds a security rule, and how it is taken out: `from`, which stands once in `file`, becomes `to`; `test` is then red. */
export const repairs: readonly {
  readonly rule: string;
  readonly repair: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** A spec, or a folder of some. */
  readonly test: string;
  /** A part of the title of the test. */
  readonly named?: string;
}[];
