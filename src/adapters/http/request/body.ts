import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { Failure } from '../../../domain/failure.ts';
import { headerOf } from './headers.ts';
import { invalid, problemsOf } from './problems.ts';

/** A request whose body a parser of the host application has read already. */
export type BodyCarrier = IncomingMessage & { readonly body?: unknown };

/** What is read and thrown away of a body that is too large, so that its sender gets to read the refusal. */
const discardFactor = 16;

const decoder = new TextDecoder('utf-8', { fatal: true });
const jsonType = /^application\/(?:[\w.+-]+\+)?json *(?:;|$)/i;
const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/**
 * Reads a JSON body into what the schema describes; no body at all is an empty object, and is
 * not read where the schema is that of nothing. Failures: `invalid_request`,
 * `payload_too_large`. Rejects with an `AbortError` when the client goes away before it has sent everything.
 */
export function bodyReader<T extends z.ZodType>(schema: T): (request: BodyCarrier, limitBytes: number) => Promise<z.output<T>> {
  const none = schema instanceof z.ZodUndefined;
  return async (request, limitBytes) => {
    const parsed = schema.safeParse(none ? undefined : await readJson(request, limitBytes));
    if (!parsed.success) throw new Failure('invalid_request', { problems: problemsOf('body', parsed.error) });
    return parsed.data;
  };
}

async function readJson(request: BodyCarrier, limitBytes: number): Promise<unknown> {
  if (request.body !== undefined) return request.body;
  const bytes = await readBytes(request, limitBytes);
  if (bytes.length === 0) return {};
  refuseOtherForms(request);
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw invalid(['body'], 'must be UTF-8', 'utf8');
  }
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(['body'], 'must be JSON', 'json_invalid');
  }
}

function refuseOtherForms({ headers }: IncomingMessage): void {
  const encoding = headerOf(headers, 'content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    throw invalid(['header', 'content-encoding'], 'must be left out: bodies are taken as they are', 'content_encoding');
  }
  const type = headerOf(headers, 'content-type');
  if (type === null) return;
  if (!jsonType.test(type)) throw invalid(['header', 'content-type'], 'must be application/json', 'content_type');
  const named = charset.exec(type)?.[1]?.toLowerCase() ?? 'utf-8';
  if (named !== 'utf-8' && named !== 'utf8') throw invalid(['header', 'content-type'], 'must name no charset but utf-8', 'content_type');
}

function readBytes(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  if (request.readableEnded) return Promise.resolve(Buffer.alloc(0));
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const refuse = () => reject(new Failure('payload_too_large', { limitBytes }));
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size <= limitBytes) chunks.push(chunk);
    else chunks.length = 0;
    if (size > limitBytes * discardFactor) refuse();
  };
  const onEnd = () => (size > limitBytes ? refuse() : resolve(Buffer.concat(chunks)));
  const onClose = () => reject(new DOMException('the client went away', 'AbortError'));
  request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  return promise.finally(() => {
    request.off('data', onData).off('end', onEnd).off('close', onClose);
  });
}
