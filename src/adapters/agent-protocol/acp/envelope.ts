import type { AnyMessage } from '@agentclientprotocol/sdk';

/** What a line of the agent's is, as far as JSON-RPC goes. */
export type Heard =
  | { readonly kind: 'request'; readonly id: string | number; readonly method: string; readonly params: unknown; readonly message: AnyMessage }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown; readonly message: AnyMessage }
  | { readonly kind: 'response'; readonly id: string | number; readonly message: AnyMessage }
  | { readonly kind: 'rubbish' };

const rubbish: Heard = { kind: 'rubbish' };

export function hear(line: string): Heard {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return rubbish;
  }
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return rubbish;
  const { id, method, params } = value;
  // Its members were looked at; the SDK looks at the rest.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the checks above are those of its type
  const message = value as AnyMessage;
  if (typeof method === 'string') {
    if (isId(id)) return { kind: 'request', id, method, params, message };
    return 'id' in value ? rubbish : { kind: 'notification', method, params, message };
  }
  return isId(id) && !('method' in value) ? { kind: 'response', id, message } : rubbish;
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
