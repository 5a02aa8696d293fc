import { limitReached, type LimitReached, type SandboxLimits } from '../../domain/limits.ts';
import { pageOf, type Page, type PageRequest } from '../../domain/page.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxFilter, SandboxStore } from '../../ports/sandbox-store.ts';
import { claimed, forgetClaims, keepClaim } from './claims.ts';
import type { Connection } from './connection.ts';
import { afterAll } from './lists.ts';
import { createPageMemory } from './page-memory.ts';
import { purgeInBatches } from './purge.ts';
import { rowOfSandbox, sandboxOf } from './sandbox-row.ts';
import {
  countRunning,
  countRunningOf,
  deleteSandbox,
  findSandbox,
  findSandboxes,
  insertSandbox,
  removedSandboxes,
  replaceSandbox,
  sandboxState,
  scanSandboxes,
  searchSandboxes,
  touchSandbox,
} from './sandbox-statements.ts';

export function createSandboxes(connection: Connection): SandboxStore {
  const remembered = createPageMemory<Page<Sandbox>>(connection);

  function room(ownerId: string, limits: SandboxLimits): LimitReached | null {
    const { runningPerOwner, running } = limits;
    return limitReached(limits, {
      ofOwner: runningPerOwner === null ? 0 : (connection.get(countRunningOf, { owner: ownerId, max: runningPerOwner })?.count ?? 0),
      all: running === null ? 0 : (connection.get(countRunning, { max: running })?.count ?? 0),
    });
  }

  function swap(sandbox: Sandbox): 'replaced' | 'stale' {
    const changed = connection.run(replaceSandbox, { ...rowOfSandbox(sandbox), expected: sandbox.generation - 1 });
    return changed === 1 ? 'replaced' : 'stale';
  }

  return {
    insert: async (sandbox, limits, claim) =>
      connection.transaction(() => {
        if (connection.get(sandboxState, { id: sandbox.id }) !== undefined) return { kind: 'inserted' };
        const earlier = claimed(connection, 'sandbox', claim);
        if (earlier !== null) return earlier;
        const reached = room(sandbox.ownerId, limits);
        if (reached !== null) return { kind: 'limit', reached };
        connection.run(insertSandbox, rowOfSandbox(sandbox));
        keepClaim(connection, 'sandbox', claim, sandbox.id);
        return { kind: 'inserted' };
      }),

    replace: async (sandbox) => ({ kind: swap(sandbox) }),

    admit: async (sandbox, limits) =>
      connection.transaction(() => {
        const stored = connection.get(sandboxState, { id: sandbox.id });
        if (stored?.generation !== sandbox.generation - 1) return { kind: 'stale' };
        // One that runs already takes no more room.
        const reached = stored.running === 1 ? null : room(sandbox.ownerId, limits);
        return reached === null ? { kind: swap(sandbox) } : { kind: 'limit', reached };
      }),

    touch: async (id, lastActiveAt) => {
      connection.run(touchSandbox, { id, at: lastActiveAt });
    },

    find: async (id) => {
      const row = connection.get(findSandbox, { id });
      return row === undefined ? null : sandboxOf(row);
    },

    findMany: async (ids) => connection.all(findSandboxes, { ids: JSON.stringify(ids) }).map(sandboxOf),

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
