import type { ZodOpenApiResponseObject } from 'zod-openapi';
import type { FailureCode } from '../../../domain/failure.ts';
import { noBody, noFields, type Operation } from '../operation.ts';
import { failureStatus } from '../response/failure-table.ts';
import { retryAfterHeader } from '../schema/headers.ts';
import { httpValidationError, problem } from '../schema/problem.ts';
import { sampleBody } from './samples.ts';

/** Every failure that the operation may answer, those of all operations of its kind included. */
export function failuresOf(operation: Operation): readonly FailureCode[] {
  const { params, query, headers, body, needsKey, changes, failures } = operation;
  const takesInput = params !== noFields || query !== noFields || headers !== noFields || body !== noBody;
  const codes: FailureCode[] = [
    ...(needsKey ? (['unauthorized', 'rate_limited', 'store_unavailable'] as const) : []),
    ...(changes === undefined ? [] : (['forbidden'] as const)),
    ...(body === noBody ? [] : (['payload_too_large'] as const)),
    ...(takesInput ? (['invalid_request'] as const) : []),
    ...failures,
    'internal',
    'shutting_down',
  ];
  return [...new Set(codes)].toSorted((a, b) => failureStatus[a] - failureStatus[b]);
}

/** By status. */
export type Responses = Record<string, ZodOpenApiResponseObject>;

/** The failures as responses, those of one status together. */
export function failureResponses(codes: readonly FailureCode[]): Responses {
  const responses: Responses = {};
  for (const [status, ofStatus] of Map.groupBy(codes, (code) => failureStatus[code])) {
    responses[`${status}`] = status === failureStatus.invalid_request ? validationResponse : problemResponse(status, ofStatus);
  }
  return responses;
}

const validationResponse = {
  description: 'Something in the request is not of the form.',
  content: { 'application/json': { schema: httpValidationError, example: sampleBody('invalid_request') } },
};

function problemResponse(status: number, codes: readonly FailureCode[]) {
  const examples = Object.fromEntries(codes.map((code) => [code, { value: sampleBody(code) }]));
  return {
    description: `${codes.map((code) => `\`${code}\``).join(', ')}.`,
    content: { 'application/problem+json': { schema: problem, examples } },
    ...((status === 429 || status === 503) && { headers: retryAfterHeader }),
  };
}
