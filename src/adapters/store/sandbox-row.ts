import type { Selectable } from 'kysely';
import { countsAsRunning } from '../../domain/sandbox-lifecycle.ts';
import { isPooled, pauseKinds, type Sandbox, sandboxStatuses } from '../../domain/sandbox.ts';
import type { Database, SandboxRow } from './database.ts';
import { columnReader, ExposedUrlsColumn, SpecColumn } from './json-columns.ts';
import { orNull, rowOf, rowReader, word } from './record-rows.ts';

export function rowOfSandbox(sandbox: Sandbox): SandboxRow {
  return { ...rowOf(sandbox), spec_id: sandbox.spec.id, running: Number(countsAsRunning(sandbox) && !isPooled(sandbox)) };
}

export const sandboxOf = rowReader<Sandbox, Selectable<Database['sandboxes']>>(
  {
    spec: columnReader(SpecColumn),
    status: word(sandboxStatuses),
    pauseKind: orNull(word(pauseKinds)),
    exposedUrls: columnReader(ExposedUrlsColumn),
  },
  ['seq', 'spec_id', 'running', 'pool_fingerprint'],
);
