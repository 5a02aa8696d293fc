import { expect, test } from 'vitest';
import { startWorld } from '../adapters/http/world.ts';
import { type Document, typesOf } from './openapi-types.ts';

test('the types of the client are those of the OpenAPI document', async () => {
  const { url } = await startWorld();
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document;
  await expect(typesOf(document)).toMatchFileSnapshot('../../src/client/openapi.ts');
});
