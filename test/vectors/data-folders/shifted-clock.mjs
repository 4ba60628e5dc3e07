/*
 * Loaded first into every process of a recording (`node --import`): its clock begins at `CLOCK_BEGINS` when the recorder's says
 * `CLOCK_REAL`, so that what is recorded lies in the past wherever it is opened.
 */
const offset = Number(process.env.CLOCK_BEGINS) - Number(process.env.CLOCK_REAL);
const RealDate = globalThis.Date;

globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [RealDate.now() + offset] : given));
  }

  static now() {
    return RealDate.now() + offset;
  }
};
