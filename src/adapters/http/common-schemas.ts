import { hash } from 'node:crypto';
import { z } from 'zod';
import { dnsLabel } from '../../domain/dns-label.ts';
import { eventActors } from '../../domain/event.ts';
import { keyAccesses } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import { parseRepositoryName } from '../../domain/repository-name.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import { sentenceOf } from '../shared/failure-sentences.ts';
import { inSnakeCase } from '../shared/snake-case.ts';

export const timestamp = z.iso.datetime().meta({ description: 'RFC 3339, in UTC.', example: '2026-01-31T12:00:00.000Z' });

export function toTimestamp(ms: number): string {
  return new Date(ms).toISOString();
}

const rfc3339 = 'must be an RFC 3339 time such as 2026-01-31T12:00:00Z; write the + of an offset as %2B';

/** A point in time in a query, parsed to milliseconds since the epoch, rounded up. */
export const timeQuery = z.iso
  .datetime({ offset: true, error: rfc3339 })
  .max(40)
  .transform((text, context) => {
    if (!/T\d\d:\d\d:/.test(text)) context.addIssue(rfc3339);
    return Date.parse(text) + (/\.\d{3}0*[1-9]/.test(text) ? 1 : 0);
  });

export const resourceId = z
  .string()
  .regex(dnsLabel, 'must be an id: at most 63 characters of a-z, 0-9 and -, without a - at the beginning or the end')
  .meta({ description: 'An id, safe as a DNS label.', example: 'sb-3f9k2m7x' });

/** Text with a maximum length that every store keeps unchanged: well-formed Unicode without NUL. */
export const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine((value) => value.isWellFormed() && !value.includes('\0'), 'must be valid Unicode text without NUL characters');

/** A query parameter that may be repeated. */
export const list = <S extends z.ZodArray>(items: S) => z.preprocess((value) => (typeof value === 'string' ? [value] : value), items);

export const specId = text(255).min(1).meta({ description: 'The id of a sandbox spec.', example: 'workspace' });

export const eventActor = z.enum(eventActors).meta({
  id: 'EventActor',
  description: 'A user of the API, the agent, Skep itself, or something that the runtime reported.',
});

export const keyAccess = z.enum(keyAccesses).meta({
  id: 'KeyAccess',
  description: '`full` can read and change everything that its user owns; `read` can only read it; `admin` can read and change everything.',
});

export const locationHeader = z.object({
  Location: z.string().meta({ format: 'uri-reference', description: 'The path of the new resource.' }),
});

export const retryAfterHeader = z.object({
  'Retry-After': z.int().min(1).describe('After how many seconds to try again.'),
});

export const idempotencyHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters')
    .optional()
    .describe(
      'Makes the request safe to repeat: a second request with the same key returns what the first one started, as it is now. ' +
      'It is a 404 for a day after that was deleted.',
    ),
});

/**
 * Returns the claim of a request with an idempotency key. `content` is everything that the request asks for. Leave out a new field if the
 * request does not have it, so that a request that is repeated after an upgrade has the same fingerprint.
 */
export function claimOf(
  headers: z.output<typeof idempotencyHeaders>,
  ownerId: string,
  operationId: string,
  content: unknown,
): { readonly claim?: IdempotencyClaim } {
  const key = headers['Idempotency-Key'];
  if (key === undefined) return {};
  return { claim: { ownerId, key, fingerprint: hash('sha256', JSON.stringify([operationId, content])) } };
}

/** The reason for a status, with the data of its code. */
export interface StatusReason extends Record<string, unknown> {
  code: string;
}

export const statusReason: z.ZodType<StatusReason> = z
  .looseObject({ code: z.string().meta({ examples: ['paused_by_owner', 'idle', 'not_ready_in_time', 'failure'] }) })
  .meta({
    id: 'StatusReason',
    description: 'The reason, for programs: a code with its data. Any version can add codes, so expect codes that you do not know.',
  });

export function presentReason(reason: Reason): StatusReason {
  return { ...inSnakeCase(reason), code: reason.code };
}

export const statusFields = {
  status_detail: z.string().nullable().describe('The reason, as a sentence.'),
  status_reason: statusReason.nullable(),
};

/** Returns the values of the status fields in the form that a presenter takes. */
export function statusFieldsOf(reason: Reason | null) {
  if (reason === null) return { statusDetail: null, statusReason: null };
  return { statusDetail: sentenceOf(reason), statusReason: presentReason(reason) };
}

export function presentStatus(reason: Reason | null) {
  const { statusDetail, statusReason } = statusFieldsOf(reason);
  return { status_detail: statusDetail, status_reason: statusReason };
}

export const signalName = z.enum([
  'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGKILL', 'SIGUSR1', 'SIGUSR2', 'SIGPIPE', 'SIGALRM', 'SIGTERM', 'SIGCONT', 'SIGSTOP', 'SIGTSTP',
  'SIGWINCH',
]);

export const terminalSize = z
  .strictObject({ cols: z.int().min(1).max(10_000), rows: z.int().min(1).max(10_000) })
  .meta({ id: 'TerminalSize', example: { cols: 80, rows: 24 } });

/** One mistake in a request. */
const validationError = z
  .object({
    loc: z.array(z.union([z.string(), z.int()])).describe('The location. The first item is path, query, header or body.'),
    msg: z.string(),
    type: z.string()
      .meta({ description: 'The kind of mistake, for programs. Expect kinds that you do not know.', example: 'invalid_value' }),
  })
  .meta({ id: 'ValidationError' });

export type ValidationProblem = z.output<typeof validationError>;

export const httpValidationErrorSchema = z
  .object({ detail: z.array(validationError) })
  .meta({ id: 'HTTPValidationError', description: 'All problems of an invalid request.' });

/** A query parameter that is true or false. */
export const flag = (description: string) =>
  z.enum(['true', 'false']).transform((value) => value === 'true').optional()
    .meta({ description, override: { type: 'boolean', enum: undefined } });

/** A whole number in a path, a query or a header. */
export const wholeNumber = (minimum: number, maximum: number) => {
  const form = `must be a whole number from ${minimum} to ${maximum}`;
  return z.string(form)
    .refine((text) => /^\d{1,15}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum, form)
    .transform(Number)
    .meta({ override: { type: 'integer', minimum, maximum, ...(maximum >= 2 ** 31 && { format: 'int64' }) } });
};

export const repositoryName = z
  .string()
  .superRefine((name, context) => {
    const parsed = parseRepositoryName(name);
    if (!parsed.ok) context.addIssue({ code: 'custom', message: sentenceOf({ code: 'repository_name', problem: parsed.problem }) });
  })
  .meta({
    description:
      '`owner/name`, `group/subgroup/name` or, for local git, a path below the root. Slashes may be written as `%2F`. ' +
      'A host in front (`github.com/owner/name`) chooses the provider.',
    example: 'acme/shop',
  });

/** The parameters that a path can have. */
export const pathParameters = {
  id: resourceId,
  execution_id: resourceId,
  permission_id: resourceId,
  port: wholeNumber(1, 65_535).describe("One of the ports in the sandbox's spec."),
  repository_name: repositoryName,
  key: text(100).min(1).describe('The id of the key, or its name.'),
};
