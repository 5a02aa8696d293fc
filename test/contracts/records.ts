import type { Conversation, QueuedMessage } from '../../src/domain/conversation.ts';
import type { EventData, EventDraft, EventKind } from '../../src/domain/event.ts';
import type { ApiKeyRecord } from '../../src/domain/api-key.ts';
import { newSandbox, type Sandbox, unowned } from '../../src/domain/sandbox.ts';
import type { SandboxSpec } from '../../src/domain/sandbox-spec.ts';

// Records for a store under test. Fields that a case does not set have a valid value.

export const someTime = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export function someSpec(changes: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    id: 'node',
    description: 'Node with git',
    image: 'node:26',
    command: ['sh', '-c', 'exec sleep infinity'],
    workingDir: '/workspace',
    initialEnv: { CI: '1', GREETING: `it's "quoted"` },
    secrets: ['DATABASE_URL'],
    allowedSecrets: ['SHOP_KEY'],
    allowPlainSecrets: false,
    sessionKeyEnv: 'SESSION_API_KEY',
    ports: [{ name: 'AGENT_SERVER', port: 8000 }, { name: 'WEB', port: 5173, public: true }],
    wakeOnAccess: 'freeze',
    ready: { probe: { kind: 'http', port: 8000, path: '/health' }, withinMs: 60_000 },
    resources: { cpus: 1.5, memoryBytes: 2 ** 31, pids: 512, openFiles: 4096, logBytes: null, diskBytes: null },
    isolation: { readOnlyRoot: true, network: 'shared', user: '1000:1000' },
    runtimeOptions: { docker: { capabilities: ['NET_BIND_SERVICE'], oci_runtime: 'runsc' } },
    labels: { team: 'shop' },
    rest: { freezeAfterMs: 900_000, stopAfterMs: 7_200_000, deleteAfterMs: null, maxLifeMs: 864_000_000 },
    pool: { size: 2 },
    agent: {
      protocol: 'acp',
      command: ['opencode', 'acp'],
      env: { HOME: '/home/agent' },
      secrets: ['MODEL_KEY'],
      permissions: 'ask',
      authMethod: null,
      startWithinMs: 30_000,
      turnTimeoutMs: 3_600_000,
      permissionTimeoutMs: 86_400_000,
    },
    ...changes,
  };
}

export function someSandbox(id: string, changes: Partial<Sandbox> = {}): Sandbox {
  const made = newSandbox({ id, ownerId: 'ann', spec: someSpec(), sessionApiKey: `secret-of-${id}`, now: someTime });
  return { ...made, ...changes };
}

export function someConversation(id: string, changes: Partial<Conversation> = {}): Conversation {
  return {
    id,
    ownerId: 'ann',
    title: `Title of ${id}`,
    sandboxId: `sandbox-of-${id}`,
    sandboxSpecId: 'node',
    startsSandbox: true,
    endsSandbox: true,
    sandboxParameters: { env: { LEVEL: '2' }, metadata: { task: '7' }, timeoutMs: 60_000, resources: { cpus: 0.5 }, secrets: ['SHOP_KEY'] },
    selectedRepository: 'acme/shop',
    selectedBranch: 'main',
    gitProvider: 'local',
    repositoryPath: 'acme/shop',
    possibleTips: { 'skep/one': ['5e1f', '6a'] },
    publications: { 'skep/one': '5e1f' },
    pullRequests: { 'skep/one': { number: 17, url: 'https://git.example/17' } },
    startPoint: { commit: '5e1f', branch: 'main' },
    queue: [],
    turn: null,
    permission: null,
    permissionPolicy: 'ask',
    agentSessionId: null,
    microagents: null,
    startStatus: 'WORKING',
    executionStatus: null,
    statusReason: null,
    version: 1,
    createdAt: someTime,
    updatedAt: someTime,
    deletedAt: null,
    archivedAt: null,
    releasedAt: null,
    removedAt: null,
    ...changes,
  };
}

/** Returns an accepted message. */
export function someMessage(messageId: string, text = 'Hello,\n"world"'): QueuedMessage {
  return { messageId, message: { content: [{ type: 'text', text }] }, sandboxVersion: 1 };
}

/** Returns a pool member that an owner can claim. */
export function somePooled(id: string, changes: Partial<Sandbox> = {}): Sandbox {
  return someSandbox(id, { ownerId: unowned, status: 'RUNNING', ...changes });
}

/** Returns a message event of the agent in ann's conversation. */
export function someEvent(text: string, changes: Partial<Omit<EventDraft, 'kind' | 'data'>> = {}): EventDraft {
  return eventOf('message', { messageId: 'message-1', role: 'agent', channel: 'answer', text }, changes);
}

export function eventOf<K extends EventKind>(
  kind: K,
  data: EventData[K],
  changes: Partial<Omit<EventDraft, 'kind' | 'data'>> = {},
): EventDraft {
  const place = { at: someTime, ownerId: 'ann', conversationId: 'conversation-1', sandboxId: 'sandbox-1' };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the kind and its data go together by the signature
  return { kind, data, actor: 'agent', userId: null, reason: null, ...place, ...changes } as EventDraft;
}

export function someApiKey(id: string, changes: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
  return {
    id,
    name: `name of ${id}`,
    userId: 'ann',
    access: 'full',
    repositories: null,
    hash: `hash-of-${id}`,
    createdAt: someTime,
    expiresAt: null,
    revokedAt: null,
    ...changes,
  };
}

/** Returns the record after a write, with the changes and the next version. */
export function nextVersion<T extends { readonly version: number }>(record: T, changes: Partial<T> = {}): T {
  return { ...record, ...changes, version: record.version + 1 };
}

/** Texts that do harm in a store that treats data as code or patterns. */
export const hostileTexts: readonly string[] = [
  `'; DROP TABLE sandboxes; --`,
  `" OR "1"="1`,
  '%',
  '_',
  '\\',
  '$1 ?1 :name @x',
  '\u0000',
  'line\nbreak\ttab',
  'null',
  '',
  '{"$ne": null}',
  'e\u0301\u{1f600}\u202e',
];
