/** In `npm run test:long`, what is generated is many times as much. */
export const isLong = process.env['LONG'] === '1';
