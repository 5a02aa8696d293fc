import { afterAll, beforeAll, expect, test } from 'vitest';
import { object } from '../../support/client.ts';
import { createWorld, type World } from './world.ts';

const conversations = '/api/v1/app-conversations';
let world: World;
beforeAll(async () => void (world = await createWorld()));
afterAll(() => world.close());

test('changes are `conversation_changes_unavailable` without a repository, and `conversation_not_found` for another owner', async () => {
  const id = String(object(await world.ann('POST', conversations, {}))['id']);
  for (const query of ['', '?format=patch', '?path=a', '?format=archive']) {
    const path = `${conversations}/${id}/changes${query}`;
    const refused = { status: 409, code: 'conversation_changes_unavailable', conversation_id: id, reason: { code: 'no_repository' } };
    expect((await world.ann('GET', path)).body).toMatchObject(refused);
    expect((await world.client(world.keys.ben)('GET', path)).body).toMatchObject({ status: 404, code: 'conversation_not_found' });
  }
  expect((await world.ann('GET', `${conversations}/${id}/changes?format=zip`)).status).toBe(422);
});

test.each([
  [{ commit_message: ' \n\t' }, ['commit_message']],
  [{ commit_message: '' }, ['commit_message']],
  [{ pull_request: { title: ' ' } }, ['pull_request', 'title']],
  [{ pull_request: { title: 'two\nlines' } }, ['pull_request', 'title']],
])('a publication is refused with %j', async (body, field) => {
  const id = String(object(await world.ann('POST', conversations, {}))['id']);
  const answer = await world.ann('POST', `${conversations}/${id}/publish`, body);
  expect(object(answer)).toMatchObject({ detail: [{ loc: ['body', ...field] }] });
});
