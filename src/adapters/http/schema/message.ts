import { z } from 'zod';
import { isStorable } from './common.ts';

const maxText = 100_000;

export const text = (max: number) => z.string().max(max).refine(isStorable, 'must be text without NUL and lone surrogates');

const textContent = z.strictObject({ type: z.literal('text'), text: text(maxText).min(1) }).meta({ id: 'TextContent' });

export const message = z.strictObject({ content: z.array(textContent).min(1).max(100) }).meta({ id: 'Message' });

export const messageAccepted = z
  .object({ message_id: z.string().meta({ description: 'The events of its turn name it.' }) })
  .meta({ id: 'MessageAccepted', description: 'The message is kept, and handed to the agent in its turn.' });

export const permissionAnswerBody = z
  .strictObject({ option_id: text(255).min(1).meta({ description: 'One of the options that the event `permission_requested` offers.' }) })
  .meta({ id: 'PermissionAnswer', example: { option_id: 'allow' } });
