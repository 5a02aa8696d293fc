import { expect, test } from 'vitest';
import { ProgressReporter } from '../../src/application/progress-reporter.ts';
import type { Reason } from '../../src/domain/reason.ts';
import { createManualClock } from '../doubles/memory/clock.ts';
import { calm } from './world.ts';

const pulling = (image: string): Reason => ({ code: 'pulling_image', image, layers: 1, doneLayers: 0, bytes: null, doneBytes: null });

test('progress is written within a second, also if the clock was set back', async () => {
  const clock = createManualClock(1_000_000_000);
  const written: Reason[] = [];
  const write = async (reason: Reason): Promise<boolean> => written.push(reason) > 0;
  await using reporter = new ProgressReporter({ clock, written: null, write });
  reporter.report(pulling('one'));
  clock.advance(250);
  await calm();
  clock.jump(-3_600_000);
  reporter.report(pulling('two'));
  clock.advance(1000);
  await calm();
  expect(written).toEqual([pulling('one'), pulling('two')]);
});
