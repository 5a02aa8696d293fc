import { expect } from 'vitest';
import { type Answer, object } from '../support/client.ts';

type Ask = (method: string, template: string, path: string, body?: unknown) => Promise<Answer>;

/** Reads the transcript of a conversation in which nothing was said, and archives it. */
export async function callEachOfHistory(id: string, ask: Ask): Promise<void> {
  const template = '/api/v1/app-conversations/{id}';
  const path = `/api/v1/app-conversations/${id}`;
  const read = async (query: string) => (await ask('GET', `${template}/transcript`, `${path}/transcript${query}`)).body;
  expect(await read('')).toBe('# Fix the bug\n');
  expect(await read('?format=json')).toEqual({ items: [] });
  const archived = await ask('PATCH', template, path, { title: 'Kept', archived: true });
  expect(object(archived)).toMatchObject({ title: 'Kept', archived_at: expect.any(String), sandbox_status: 'MISSING' });
  expect(await read('')).toBe('# Kept\n');
}
