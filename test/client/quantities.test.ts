import { expect, test } from 'vitest';
import { durationUnits, formatQuantity, parseQuantity, sizeUnits } from '../../src/client/quantities.ts';

test.each([
  ['1B', sizeUnits], ['1023B', sizeUnits], ['512MiB', sizeUnits], ['512MB', sizeUnits], ['1536MiB', sizeUnits], ['2GiB', sizeUnits], ['3TB', sizeUnits],
  ['1ms', durationUnits], ['90s', durationUnits], ['2h', durationUnits], ['30d', durationUnits],
])('%s is formatted as it was parsed', (text, units) => {
  expect(formatQuantity(parseQuantity(text, units) ?? 0, units)).toBe(text);
});
