import { countsAsRunning } from '../../../domain/sandbox-lifecycle.ts';
import { isPooled, pauseKinds, type Sandbox, sandboxStatuses } from '../../../domain/sandbox.ts';
import { columnReader, wordOf, wordOrNull } from './columns.ts';
import { ExposedUrlsColumn, SpecColumn } from './schema.ts';
import type { SandboxRow } from './tables.ts';

export function rowOfSandbox(sandbox: Sandbox): SandboxRow {
  return {
    id: sandbox.id,
    instance_id: sandbox.instanceId,
    owner_id: sandbox.ownerId,
    spec_id: sandbox.spec.id,
    status: sandbox.status,
    status_detail: sandbox.statusDetail,
    status_since: sandbox.statusSince,
    turn_at: sandbox.startingSince,
    pause_kind: sandbox.pauseKind,
    session_api_key: sandbox.sessionApiKey,
    generation: sandbox.version,
    created_at: sandbox.createdAt,
    updated_at: sandbox.updatedAt,
    last_active_at: sandbox.lastActiveAt,
    deleted_at: sandbox.deletedAt,
    removed_at: sandbox.removedAt,
    running: Number(countsAsRunning(sandbox) && !isPooled(sandbox)),
    exposed_urls: JSON.stringify(sandbox.exposedUrls),
    spec: JSON.stringify(sandbox.spec),
  };
}

export const sandboxColumns = [
  'id',
  'instance_id',
  'owner_id',
  'spec_id',
  'status',
  'status_detail',
  'status_since',
  'turn_at',
  'pause_kind',
  'session_api_key',
  'generation',
  'created_at',
  'updated_at',
  'last_active_at',
  'deleted_at',
  'removed_at',
  'running',
  'exposed_urls',
  'spec',
] as const satisfies readonly (keyof SandboxRow)[];

const readSpec = columnReader(SpecColumn);
const readExposedUrls = columnReader(ExposedUrlsColumn);

export function sandboxOf(row: SandboxRow): Sandbox {
  return {
    id: row.id,
    instanceId: row.instance_id,
    ownerId: row.owner_id,
    spec: readSpec(row.spec),
    status: wordOf(sandboxStatuses, row.status),
    statusDetail: row.status_detail,
    statusSince: row.status_since,
    startingSince: row.turn_at,
    pauseKind: wordOrNull(pauseKinds, row.pause_kind),
    sessionApiKey: row.session_api_key,
    exposedUrls: readExposedUrls(row.exposed_urls),
    version: row.generation,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastActiveAt: row.last_active_at,
    deletedAt: row.deleted_at,
    removedAt: row.removed_at,
  };
}
