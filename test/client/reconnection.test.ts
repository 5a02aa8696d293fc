import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Connection } from '../../src/client/connection.ts';
import { connectionLost } from '../../src/client/failures.ts';
import { Reconnection } from '../../src/client/reconnection.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('the time limit begins when a connection is lost, however long it was open', async () => {
  const reconnection = new Reconnection(new Connection({ url: 'localhost' }), { reconnectForMs: 1000 });
  const lost = connectionLost();
  for (const open of [60_000, 3_600_000]) {
    reconnection.succeeded();
    await vi.advanceTimersByTimeAsync(open);
    await Promise.all([reconnection.wait(lost), vi.advanceTimersByTimeAsync(250)]);
  }
  await vi.advanceTimersByTimeAsync(1000);
  await expect(reconnection.wait(lost)).rejects.toBe(lost);
});
