import { z } from 'zod';
import { resourceId } from '../common-schemas.ts';

export const executionPath = z.object({ id: resourceId, execution_id: resourceId });
const offset = z.string().regex(/^\d{1,15}$/, 'must be an offset in bytes').transform(Number).optional();

/** A query parameter that is an offset in bytes. */
export const offsetOf = (description: string) => offset.meta({ description, override: { type: 'string' } });
