import { z } from 'zod';
import { sandboxStatuses } from '../../../domain/sandbox.ts';
import { failureStatus } from '../response/failure-table.ts';

const codes = Object.keys(failureStatus).filter((code) => code !== 'invalid_request');

/** RFC 9457 problem details; which of the members after `code` are there depends on the code. */
export const problem = z
  .looseObject({
    type: z.string().meta({ format: 'uri-reference', example: 'about:blank' }),
    title: z.string().meta({ description: 'The phrase of the HTTP status.' }),
    status: z.int().meta({ description: 'The HTTP status.' }),
    detail: z.string().meta({ description: 'What went wrong and what to do, in words.' }),
    code: z.enum(codes).meta({ description: 'The name of the failure, for programs.' }),
    retry_after_seconds: z.int().optional().meta({ description: 'As in the header Retry-After.' }),
    repository: z.string().optional(),
    sandbox_id: z.string().optional(),
    sandbox_status: z.enum(sandboxStatuses).optional().meta({ description: 'The status of the sandbox that refused the move.' }),
    conversation_id: z.string().optional(),
    permission_id: z.string().optional(),
    path: z.string().optional().meta({ description: 'A path inside a sandbox.' }),
    allow: z.array(z.string()).optional(),
    key: z.string().optional().meta({ description: 'The idempotency key.' }),
    limit: z.string().optional().meta({ description: 'The limit that is reached.' }),
    max: z.int().optional(),
    limit_bytes: z.int().optional(),
    limit_ms: z.int().optional(),
    incident: z.string().optional().meta({ description: 'What the log knows it by.' }),
    provider: z.string().optional(),
    runtime: z.string().optional(),
  })
  .meta({ id: 'Problem', description: 'Problem details as of RFC 9457.' });

const validationError = z
  .object({
    loc: z.array(z.union([z.string(), z.int()])).meta({ description: 'The place; begins with path, query, header or body.' }),
    msg: z.string(),
    type: z.string(),
  })
  .meta({ id: 'ValidationError' });

export const httpValidationError = z
  .object({ detail: z.array(validationError) })
  .meta({ id: 'HTTPValidationError', description: 'Everything about the request that is not of the form.' });
