import { pageOf, type Page, type PageRequest } from '../../../domain/page.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { SandboxFilter, SandboxStore } from '../../../ports/sandbox-store.ts';
import { forgetClaims } from './claims.ts';
import type { Connection } from './connection.ts';
import type { Journal } from './journal.ts';
import { afterAll } from './lists.ts';
import { createPageMemory } from './page-memory.ts';
import { purgeInBatches } from './purge.ts';
import { createAdmission } from './sandbox-admission.ts';
import { sandboxOf } from './sandbox-row.ts';
import {
  deleteSandbox,
  findSandbox,
  findSandboxByInstance,
  findSandboxes,
  idleSandboxes,
  idleSandboxesOf,
  pooledSandboxes,
  removedSandboxes,
  scanSandboxes,
  searchSandboxes,
  touchSandbox,
} from './sandbox-statements.ts';

export function createSandboxes(unwatched: Connection, journal: Journal): SandboxStore {
  const { connection, remembered } = createPageMemory<Page<Sandbox>>(unwatched);

  return {
    ...createAdmission(connection, journal),

    touch: async (id, lastActiveAt) => {
      connection.run(touchSandbox, { id, at: lastActiveAt });
    },

    find: async (id) => {
      const row = connection.get(findSandbox, { id });
      return row === undefined ? null : sandboxOf(row);
    },

    findMany: async (ids) => connection.all(findSandboxes, { ids: JSON.stringify(ids) }).map(sandboxOf),

    findByInstance: async (instanceId) => {
      const row = connection.get(findSandboxByInstance, { instance: instanceId });
      return row === undefined ? null : sandboxOf(row);
    },

    pooled: async () =>
      connection.all(pooledSandboxes, {}).map((row) => ({ sandbox: sandboxOf(row), fingerprint: row.pool_fingerprint })),

    longestIdle: async (owner, limit) =>
      (owner === null ? connection.all(idleSandboxes, { limit }) : connection.all(idleSandboxesOf, { owner, limit })).map(sandboxOf),

    search: async (ownerId, filter, page) => {
      const values = searchValues(ownerId, filter, page);
      return remembered(JSON.stringify([filter, values]), () => {
        const rows = connection.all(searchSandboxes[shapeOf(filter)], values);
        return pageOf(rows.map(sandboxOf), page.limit, ({ createdAt, id }) => ({ value: createdAt, id }));
      });
    },

    scan: async (afterId, limit) => connection.all(scanSandboxes, { after: afterId ?? '', limit }).map(sandboxOf),

    purge: (removedBefore) =>
      purgeInBatches(
        connection,
        (limit) => connection.all(removedSandboxes, { before: removedBefore, limit }),
        (id) => {
          forgetClaims(connection, 'sandbox', id);
          connection.run(deleteSandbox, { id });
        },
      ),
  };
}

function shapeOf({ status, specId }: SandboxFilter): keyof typeof searchSandboxes {
  if (status === undefined) return specId === undefined ? 'all' : 'bySpec';
  return specId === undefined ? 'byStatus' : 'byBoth';
}

function searchValues(owner: string, filter: SandboxFilter, { after, limit }: PageRequest) {
  const { value, id } = after ?? afterAll;
  return { owner, status: filter.status ?? '', spec: filter.specId ?? '', value, id, limit: limit + 1 };
}
