import { z } from 'zod';
import { fileTypes } from '../../domain/file-entry.ts';
import { sandboxStatusSchema } from '../shared/event-data-schemas.ts';
import { keyAccess, statusReason } from './common-schemas.ts';

/** Members whose name says what they are. */
const names = ['repository', 'branch', 'sandbox_id', 'conversation_id', 'permission_id', 'execution_id', 'key_id', 'provider', 'runtime'];

/** RFC 9457 problem details. The code decides which members follow `code`. */
export const problemSchema = z
  .looseObject({
    type: z.string().meta({ format: 'uri-reference', example: 'about:blank' }),
    title: z.string().describe('The name of the HTTP status.'),
    status: z.int().describe('The HTTP status.'),
    detail: z.string().describe('What went wrong and what to do, as a sentence.'),
    // No enum, since a client with one could not read the failures of a later version.
    code: z.string()
      .meta({ description: 'The name of the failure, for programs. Expect codes that you do not know.', example: 'sandbox_not_found' }),
    retry_after_seconds: z.int().optional().describe('In how many seconds to try again, as in the header `Retry-After`.'),
    ...Object.fromEntries(names.map((name) => [name, z.string().optional()])),
    sandbox_status: sandboxStatusSchema.optional().describe('The status, which does not allow the request.'),
    port: z.int().optional().describe('A port inside a sandbox.'),
    exposed: z.array(z.int()).optional().describe('The ports in the spec of the sandbox.'),
    path: z.string().optional().describe('A path inside a sandbox, or of a repository.'),
    etag: z.string().nullable().optional().describe('The `ETag` of the file; null if there is none.'),
    size: z.int().optional().describe('How many bytes the file has.'),
    file_type: z.enum(fileTypes).optional(),
    oldest: z.int().optional().describe('The offset of the oldest byte of the output that is kept.'),
    allow: z.array(z.string()).optional(),
    name: z.string().optional().describe('The name of a key.'),
    key: z.string().optional().describe('The idempotency key.'),
    limit: z.string().optional().describe('The limit that is reached.'),
    ...Object.fromEntries(['max', 'limit_bytes', 'limit_ms'].map((name) => [name, z.int().optional()])),
    access: keyAccess.nullable().optional().describe('The access that a key needs; null if no key may.'),
    size_bytes: z.int().nullable().optional().describe('How many bytes the body of the request has, if it names its size.'),
    incident: z.string().optional().describe("The id of this error in the server's log."),
    listing: z.string().optional().describe('What the git provider cannot list.'),
    pushed: z.object({ branch: z.string(), commit: z.string() }).optional().describe('What was pushed before it failed.'),
    sso_url: z.string().nullable().optional().describe('Where the owner of the token authorises it for the organisation.'),
    reason: statusReason.optional(),
  })
  .meta({ id: 'Problem', description: 'Problem details (RFC 9457).' });
