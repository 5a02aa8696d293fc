import { countsAsRunning } from '../../domain/sandbox-lifecycle.ts';
import { isPooled, pauseKinds, type Sandbox, sandboxStatuses } from '../../domain/sandbox.ts';
import type { SandboxRow } from './database.ts';
import { columnReader, ExposedUrlsColumn, SpecColumn, wordOf, wordOrNull } from './json-columns.ts';

export function rowOfSandbox(sandbox: Sandbox): SandboxRow {
  return {
    id: sandbox.id,
    instance_id: sandbox.instanceId,
    owner_id: sandbox.ownerId,
    spec_id: sandbox.spec.id,
    status: sandbox.status,
    status_detail: sandbox.statusDetail,
    status_since: sandbox.statusSince,
    starting_since: sandbox.startingSince,
    pause_kind: sandbox.pauseKind,
    session_api_key: sandbox.sessionApiKey,
    version: sandbox.version,
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
    startingSince: row.starting_since,
    pauseKind: wordOrNull(pauseKinds, row.pause_kind),
    sessionApiKey: row.session_api_key,
    exposedUrls: readExposedUrls(row.exposed_urls),
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    lastActiveAt: row.last_active_at,
    deletedAt: row.deleted_at,
    removedAt: row.removed_at,
  };
}
