import { expect, test } from 'vitest';
import { doubleToken, startGitHubDouble } from '../../../doubles/github/index.ts';

async function refused(path: string, init: RequestInit = {}): Promise<void> {
  const double = await startGitHubDouble();
  double.repositories.put('acme/shop', '/nowhere');
  const headers = { authorization: `token ${doubleToken}`, 'user-agent': 'test' };
  const answer = await fetch(double.url + path, { headers, ...init });
  expect(answer.status).toBe(500);
  await expect(double.close()).rejects.toThrow('GitHub would not have understood');
}

test.each([
  '/repos/acme/shop/nothing',
  '/nothing',
  '/repos/acme/shop/commits?per_page=101',
  '/repos/acme/shop/commits?per_page=0',
  '/repos/acme/shop/commits?page=x',
  '/repos/acme/shop/commits?follow=true',
  '/repos/acme/shop/commits/HEAD?x=1',
  '/repos/acme/shop/git/trees/HEAD?deep=1',
])('the double refuses %s', async (path) => {
  await refused(path);
});

test.each(['{ nothing }', '{ repository(owner: "acme") { name } }', 'rubbish'])('the double refuses the query %s', async (query) => {
  await refused('/graphql', { method: 'POST', body: JSON.stringify({ query }) });
});

test('the double refuses an unknown token, and GraphQL without a token', async () => {
  const double = await startGitHubDouble();
  const bad = await fetch(`${double.url}/repos/acme/shop`, { headers: { authorization: 'token nobody' } });
  const none = await fetch(`${double.url}/graphql`, { method: 'POST', body: '{}' });
  expect([bad.status, none.status]).toEqual([401, 401]);
  await double.close();
});

test('the double refuses variables that the query does not declare', async () => {
  const query = '{ repository(owner: "acme", name: "shop") { name } }';
  await refused('/graphql', { method: 'POST', body: JSON.stringify({ query, variables: { x: 'y' } }) });
});
