import { z } from 'zod';
import type { ListingCache } from '../../../ports/listing-cache.ts';
import { knowledgeScope, type Credential } from './credential.ts';
import type { Head } from './head.ts';
import type { HostUrl } from './host-url.ts';
import { jsonOrNull } from './json.ts';
import { readSnapshot, writeSnapshot, type Snapshot } from './snapshot.ts';

/** When the host confirmed what a name stands for. */
export interface Confirmation {
  readonly head: Head;
  /** In ms since the epoch. */
  readonly at: number;
}

/** What was learnt of the host with this credential. It is never needed: where the store fails, nothing is known. */
export interface Knowledge {
  snapshot(head: Head, directory: string): Promise<Snapshot | null>;
  keepSnapshot(head: Head, directory: string, snapshot: Snapshot): Promise<void>;
  confirmation(repository: string): Promise<Confirmation | null>;
  keepConfirmation(repository: string, confirmation: Confirmation): Promise<void>;
}

const KeptConfirmation = z.object({
  head: z.object({ project: z.union([z.string(), z.number()]), name: z.string(), sha: z.string().nullable() }),
  at: z.number(),
});

export function createKnowledge(store: ListingCache, host: HostUrl, credential: Credential): Knowledge {
  const scopeOf = async (): Promise<string> => knowledgeScope(`${host.origin}${host.apiPath}`, await credential.headers());

  async function get(key: string): Promise<string | null> {
    try {
      return await store.get(await scopeOf(), key);
    } catch {
      return null;
    }
  }

  async function put(key: string, value: string): Promise<void> {
    try {
      await store.put(await scopeOf(), key, value);
    } catch {
      // It will be learnt again.
    }
  }

  return {
    async snapshot({ project }, directory) {
      const text = await get(snapshotKey(project, directory));
      return text === null ? null : readSnapshot(text);
    },
    keepSnapshot: ({ project }, directory, snapshot) => put(snapshotKey(project, directory), writeSnapshot(snapshot)),
    async confirmation(repository) {
      const { success, data } = KeptConfirmation.safeParse(jsonOrNull((await get(confirmationKey(repository))) ?? ''));
      return success ? data : null;
    },
    keepConfirmation: (repository, confirmation) => put(confirmationKey(repository), JSON.stringify(confirmation)),
  };
}

function snapshotKey(project: Head['project'], directory: string): string {
  return JSON.stringify(['directory', project, directory]);
}

function confirmationKey(repository: string): string {
  return JSON.stringify(['repository', repository]);
}
