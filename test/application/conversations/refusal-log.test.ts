import { expect, test } from 'vitest';
import { logRefusal } from '../../../src/application/conversations/conversation-work-tree.ts';
import { SnapshotRefusal } from '../../../src/ports/work-tree-snapshot.ts';

test.each([
  ['info', { code: 'nothing_to_publish' }],
  ['info', { code: 'branch_moved' }],
  ['info', { code: 'history_rewritten' }],
  ['warn', { code: 'snapshot_failed', exitCode: 128 }],
] as const)('a refusal is logged as %s, with its stack only if it is a warning: %j', (level, reason) => {
  const logged: [string, object][] = [];
  const at = (name: string) => (fields: object): void => void logged.push([name, fields]);
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  logRefusal({ logger }, 'c1', new SnapshotRefusal(reason), 'not published');
  expect(logged).toEqual([[level, level === 'warn' ? { conversation: 'c1', error: expect.any(Error) } : { conversation: 'c1', reason, detail: null }]]);
});
