import { z } from 'zod';
import type { Message } from '../../domain/conversation.ts';
import type { ExposedUrl } from '../../domain/sandbox.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';

// What is kept as JSON in a column. The annotations hold each schema to its domain type.

const limit = z.number().nullable();

export const SpecColumn: z.ZodType<SandboxSpec> = z.object({
  id: z.string(),
  description: z.string().nullable(),
  image: z.string().nullable(),
  command: z.array(z.string()).nullable(),
  workingDir: z.string(),
  initialEnv: z.record(z.string(), z.string()),
  sessionKeyEnv: z.string(),
  ports: z.array(z.object({ name: z.string(), port: z.number() })),
  ready: z.object({
    probe: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('none') }),
      z.object({ kind: z.literal('tcp'), port: z.number() }),
      z.object({ kind: z.literal('http'), port: z.number(), path: z.string() }),
    ]),
    withinMs: z.number(),
  }),
  resources: z.object({ cpus: limit, memoryBytes: limit, pids: limit }),
  rest: z.object({ freezeAfterMs: limit, stopAfterMs: limit, deleteAfterMs: limit }),
});

export const ExposedUrlsColumn: z.ZodType<readonly ExposedUrl[]> = z.array(
  z.object({ name: z.string(), url: z.string(), port: z.number() }),
);

export const MessageColumn: z.ZodType<Message> = z.object({
  content: z.array(z.object({ type: z.literal('text'), text: z.string() })),
});
