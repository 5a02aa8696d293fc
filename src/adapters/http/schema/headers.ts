import { z } from 'zod';

/** Where the resource that was made is found. */
export const locationHeader = z.object({
  Location: z.string().meta({ format: 'uri-reference', description: 'Where it is found.' }),
});

export const retryAfterHeader = z.object({
  'Retry-After': z.int().min(1).meta({ description: 'In how many seconds to try again.' }),
});
