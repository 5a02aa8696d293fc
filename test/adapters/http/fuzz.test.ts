import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorld, type World } from './world.ts';

let world: World;
let templates: readonly string[];
beforeAll(async () => {
  world = await createWorld();
  const { paths } = (await (await fetch(`${world.url}/openapi.json`)).json()) as { paths: object };
  templates = Object.keys(paths);
});
afterAll(() => world.close());

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const visible = fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength: 40 });
const encoded = fc.string({ unit: 'binary', maxLength: 30 }).map((value) => encodeURIComponent(value.toWellFormed()));
const value = fc.oneof(visible.map((word) => word.replaceAll(/[?#]/g, '')), encoded, fc.constantFrom('..', '%2e%2e', '%', '%00', '//', 'acme/shop', 'sb-1', '-1', '0', '101', '%ff'));
const names = [
  'limit', 'page_id', 'ids', 'sort_order', 'status__eq', 'sandbox_spec_id', 'sandbox_spec_id__eq', 'title__contains', 'created_at__gte',
  'updated_at__lt', 'sandbox_id__eq', 'kinds', 'after', '__proto__', 'constructor', 'limit[]',
];
const query = fc.array(fc.tuple(fc.oneof(fc.constantFrom(...names), value), value), { maxLength: 4 }).map((pairs) => pairs.map(([name, given]) => `${name}=${given}`).join('&'));
const json = fc
  .oneof(
    fc.jsonValue(),
    fc.record(
      {
        title: fc.jsonValue(), sandbox_id: fc.jsonValue(), sandbox_spec_id: fc.jsonValue(), pause_kind: fc.jsonValue(),
        selected_repository: fc.oneof(value, fc.jsonValue()), selected_branch: fc.oneof(value, fc.jsonValue()), initial_message: fc.jsonValue(),
        content: fc.jsonValue(), option_id: fc.jsonValue(), permission_policy: fc.jsonValue(),
      },
      { requiredKeys: [] },
    ),
  )
  .map((body) => Buffer.from(JSON.stringify(body)));
const body = fc.oneof(fc.constant(Buffer.alloc(0)), json, fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)));
const headers = fc.dictionary(
  fc.constantFrom('content-type', 'content-encoding', 'idempotency-key', 'x-request-id', 'accept', 'if-none-match', 'x-http-method-override', 'origin', 'last-event-id'),
  fc.oneof(visible, fc.constantFrom('application/json', 'gzip', 'utf-8', '*/*')),
  { maxKeys: 4 },
);
const asked: fc.Arbitrary<Asked> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE', 'PROPFIND'),
  path: fc
    .oneof(fc.tuple(fc.nat(), value).map(([index, given]) => (templates[index % templates.length] ?? '').replaceAll(/\{\w+\}/g, () => given)), value.map((given) => `/${given}`))
    .chain((path) => query.map((given) => (given === '' ? path : `${path}?${given}`))),
  headers,
  body,
});

/** Sends the request unchanged, which an ordinary client would not do. */
async function ask({ method, path, headers: given, body: bytes }: Asked): Promise<{ status: number; media: string; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; media: string; text: string }>();
  const sent = request({ host: '127.0.0.1', port: world.port, method, path, headers: { ...given, 'X-Session-API-Key': world.keys.ann, 'Content-Length': bytes.length } });
  sent.setTimeout(10_000, () => sent.destroy(new Error('no answer')));
  sent.on('error', reject).on('response', (response) => {
    const { 'content-type': media = '' } = response.headers;
    // A stream does not end by itself.
    if (media.startsWith('text/event-stream')) {
      response.destroy();
      resolve({ status: response.statusCode ?? 0, media, text: '' });
      return;
    }
    text(response).then((answer) => resolve({ status: response.statusCode ?? 0, media, text: answer }), reject);
  });
  sent.end(bytes);
  return await promise;
}

test('random requests get only documented status codes and media types, and log no error', async () => {
  const known = new Set([200, 201, 202, 204, 302, 400, 401, 403, 404, 405, 409, 413, 415, 422, 426, 429]);
  await fc.assert(
    fc.asyncProperty(asked, async (given) => {
      const { status, media, text: answer } = await ask(given);
      expect(known).toContain(status);
      expect(answer).not.toMatch(/Cannot [A-Z]+ |node_modules|\.ts:\d/);
      if (status >= 402 && given.method !== 'HEAD') expect(media).toMatch(status === 422 ? /^application\/json/ : /^application\/problem\+json/);
    }),
    { numRuns: 1500 },
  );
  expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
});
