import { z } from 'zod';
import type { Principal } from '../../../domain/principal.ts';
import { type ApiKeyRecord, keyFormats, keyStateOf, keyStates } from '../../../domain/api-key.ts';
import type { CreatedApiKey } from '../../../ports/api-keys.ts';
import { keyAccess, text, timestamp } from '../common-schemas.ts';
import { operation } from '../operation.ts';
import { presenter } from '../presenter.ts';
import type { RequestContext } from '../request-context.ts';

const patterns = z.array(z.string()).nullable()
  .describe('The repositories that it can list, clone and publish to, as patterns (`acme/*`). Null: all.');

const keyFields = {
  id: z.string(),
  name: z.string(),
  user_id: z.string().describe('The owner of everything that the key creates.'),
  access: keyAccess,
  repositories: patterns,
  created_at: timestamp,
  expires_at: timestamp.nullable().describe('Null: never.'),
};

const keyResource = z.object({
  ...keyFields,
  revoked_at: timestamp.nullable(),
  state: z.enum(keyStates),
  is_own: z.boolean().describe('Whether it is the key of this request.'),
}).meta({ id: 'Key', description: 'An API key, without the key itself.' });

const newKey = z.object({
  ...keyFields,
  key: z.string().describe('The key itself. No later response shows it.'),
}).meta({ id: 'CreatedKey' });

const keyCreateBody = z.strictObject({
  name: text(100).min(1).describe('Must be unique among the valid keys. An expired key that has it is revoked.'),
  user_id: text(100).min(1).optional().describe('The owner of what the key creates. Default: your own user.'),
  access: keyAccess.default('full'),
  repositories: z.array(text(1024)).max(100).nullable().optional()
    .describe('Default: all repositories. A key for some repositories only needs a user of its own.'),
  expires_in_seconds: z.int().min(1).max(100 * 365 * 86_400).optional().describe('Default: the key does not expire.'),
  format: z.enum(keyFormats).default('skep').describe("The form of the key. E2B's clients accept only `e2b`."),
}).meta({ id: 'KeyCreateRequest', example: { name: 'ci', access: 'full', expires_in_seconds: 2_592_000 } });

const loginBody = z.strictObject({
  code: text(200).min(1).describe('The part of the login link after `#/login/`.'),
}).meta({ id: 'LoginRequest' });

/** `caller` is null if no request was made. */
export const presentKey = presenter(keyResource, (record: ApiKeyRecord, caller: Principal | null, now: number) => {
  const state = keyStateOf(record, now);
  const isOwn = state === 'valid' && caller !== null && record.name === caller.keyName && record.userId === caller.userId;
  return { ...record, state, isOwn } as const;
});

export const presentNewKey = presenter(newKey, ({ key, record }: CreatedApiKey) => ({ ...record, key }));

/** The line of the request has the same id and names the key that made it. */
function logKey({ skep, requestId }: RequestContext, { id, name, userId, access }: ApiKeyRecord, message: string): void {
  skep.logger.info({ request_id: requestId, id, name, user: userId, access }, message);
}

const keys = '/api/v1/keys';

export const keyOperations = [
  operation('get', keys, {
    tag: 'Keys',
    operationId: 'list_keys',
    summary: 'List keys',
    description: 'Oldest first, with expired and revoked keys. An administrator gets the keys of all users; others only their own keys.',
    success: { status: 200, description: 'The keys.', schema: z.object({ items: z.array(keyResource) }).meta({ id: 'KeyList' }) },
    failures: ['keys_unsupported'],
    handle: async ({ skep, principal }) => {
      const records = await skep.keys.list(principal);
      return { items: records.map((record) => presentKey(record, principal, skep.clock.now())) };
    },
  }),
  operation('post', keys, {
    tag: 'Keys',
    operationId: 'create_key',
    summary: 'Create a key',
    description: 'Only for administrators whose own key is not limited to repositories.',
    adminOnly: true,
    body: keyCreateBody,
    success: { status: 201, description: 'The key. No later response shows it.', schema: newKey },
    failures: ['key_name_taken', 'keys_unsupported'],
    handle: async (context, { body: { name, user_id: userId, access, repositories, expires_in_seconds: seconds, format } }) => {
      const made = await context.skep.keys.create(context.principal, {
        name, access, format,
        ...(userId !== undefined && { userId }),
        ...(repositories !== undefined && { repositories }),
        ...(seconds !== undefined && { expiresInMs: seconds * 1000 }),
      });
      logKey(context, made.record, 'a key was created');
      return presentNewKey(made);
    },
  }),
  operation('delete', `${keys}/{key}`, {
    tag: 'Keys',
    operationId: 'revoke_key',
    summary: 'Revoke a key',
    description: 'Takes effect with the next request; open streams end within five seconds. Revoking it again by its id succeeds. A key ' +
      'that is limited to repositories can revoke only itself.',
    success: { status: 204, description: 'It is revoked.' },
    failures: ['key_not_found', 'keys_unsupported'],
    handle: async (context, { params }) => {
      const before = await context.skep.keys.revoke(context.principal, params.key);
      if (before.revokedAt === null) logKey(context, before, 'a key was revoked');
    },
  }),
  operation('post', '/api/v1/login', {
    tag: 'Keys',
    operationId: 'log_in',
    summary: 'Log in with a link',
    description: 'Exchanges the code of a dashboard login link for a key. The code works once, within ten minutes.',
    isPublic: true,
    body: loginBody,
    success: { status: 200, description: 'The key.', schema: newKey },
    failures: ['login_code_invalid', 'keys_unsupported', 'rate_limited'],
    handle: async (context, { body }) => {
      const made = await context.http.authenticator.logIn(context.request, () => context.skep.keys.logIn(body.code));
      logKey(context, made.record, 'a key was created by a login link');
      return presentNewKey(made);
    },
  }),
];
