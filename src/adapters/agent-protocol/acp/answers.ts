import { z } from 'zod';

const authMethod = z.object({
  id: z.string(),
  name: z.string().catch(''),
  description: z.string().nullish().catch(null),
  vars: z.array(z.object({ name: z.string() })).optional().catch(undefined),
});

/** A way in that the agent offers. */
export type AuthMethod = z.infer<typeof authMethod>;

export const initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z
    .object({
      loadSession: z.boolean().optional().catch(false),
      sessionCapabilities: z.object({ resume: z.unknown() }).partial().nullish().catch(null),
    })
    .nullish()
    .catch(null),
  authMethods: z.array(authMethod).nullish().catch(null),
});

export type Initialized = z.infer<typeof initialized>;

export const sessionMade = z.object({ sessionId: z.string().min(1) });

export const promptAnswer = z.object({ stopReason: z.string() });

/** What a failure's `data` may say besides its message. */
export const failureData = z.union([
  z.string(),
  z.object({ message: z.string() }).transform(({ message }) => message),
  z.object({ details: z.string() }).transform(({ details }) => details),
  z.object({ error: z.string() }).transform(({ error }) => error),
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
]);
