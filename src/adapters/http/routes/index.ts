import type { Operation } from '../operation.ts';
import { conversationOperations } from './conversations.ts';
import { eventOperations } from './events.ts';
import { messageOperations } from './messages.ts';
import { microagentOperations } from './microagents.ts';
import { sandboxSpecOperations } from './sandbox-specs.ts';
import { sandboxOperations } from './sandboxes.ts';
import { serviceOperations } from './service.ts';

/** Everything that the HTTP interface can do: the routes and the OpenAPI document are made from it. */
export const operations: readonly Operation[] = [
  ...microagentOperations,
  ...conversationOperations,
  ...messageOperations,
  ...eventOperations,
  ...sandboxOperations,
  ...sandboxSpecOperations,
  ...serviceOperations,
];
