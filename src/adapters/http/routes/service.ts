import { z } from 'zod';
import { operation, plain } from '../operation.ts';
import { retryAfterHeader } from '../schema/headers.ts';
import { health, readinessReport } from '../schema/service.ts';

const open = { ...plain, method: 'get', tag: 'Service', needsKey: false, failures: [] } as const;

export const serviceOperations = [
  operation({
    ...open,
    path: '/health',
    operationId: 'health',
    summary: 'Tell that the server listens',
    success: { status: 200, description: 'It listens.', schema: health },
    handle: () => ({ value: { status: 'ok' as const } }),
  }),
  operation({
    ...open,
    path: '/ready',
    operationId: 'ready',
    summary: 'Tell whether every part answers',
    success: { status: 200, description: 'Every part answers.', schema: readinessReport },
    otherwise: { status: 503, description: 'A part does not answer.', schema: readinessReport, headers: retryAfterHeader },
    handle: async ({ readiness }) => {
      const value = await readiness.report();
      return value.status === 'ready' ? { value } : { value, status: 503, headers: { 'Retry-After': '1' } };
    },
  }),
  operation({
    ...open,
    path: '/openapi.json',
    operationId: 'openapi',
    summary: 'Get this description',
    success: { status: 200, description: 'An OpenAPI 3.1 document.', schema: z.looseObject({ openapi: z.string() }) },
    handle: ({ papers, mount }) => ({ value: papers.openApi(mount) }),
  }),
  operation({
    ...open,
    path: '/docs',
    operationId: 'docs',
    summary: 'Read this description',
    success: { status: 200, description: 'A page for people.', schema: z.string(), media: 'text/html; charset=utf-8' },
    handle: ({ papers, mount, link }) => {
      const { html, policy } = papers.docs(mount, link);
      return { value: html, headers: { 'Content-Security-Policy': policy } };
    },
  }),
];
