import { z } from 'zod';
import { resourceId } from '../common-schemas.ts';

export const executionPath = z.object({ id: resourceId, execution_id: resourceId });
const flag = z.enum(['true', 'false']).transform((value) => value === 'true').optional();
const offset = z.string().regex(/^\d{1,15}$/, 'must be an offset in bytes').transform(Number).optional();

/** A query parameter that is an offset in bytes. */
export const offsetOf = (description: string) => offset.meta({ description, override: { type: 'string' } });

/** A query parameter that is true or false. */
export const flagOf = (description: string) => flag.meta({ description, override: { type: 'string', enum: ['true', 'false'] } });
