import { describe, expect, test } from 'vitest';
import type { NewPullRequest } from '../../../../src/ports/git-provider.ts';
import type { Fault } from '../../../doubles/gitlab/index.ts';
import { failureOf, pullRequestOfWork, start } from '../support.ts';
import { type Host, hostOf, providerOf } from './support.ts';

async function createShop(): Promise<{ host: Host; project: number; open: (request?: Partial<NewPullRequest>) => Promise<unknown> }> {
  const host = await hostOf();
  const commits = [{ id: 'first', at: start, files: [['a', '1'] as const] }, { id: 'second', at: start + 10, files: [['a', '2'] as const] }];
  await host.publish({ commits, branches: { main: 'first', next: 'first', work: 'second' } });
  const provider = providerOf(host);
  return {
    host,
    project: host.projects.find('acme/shop')?.repository.id ?? 0,
    open: async (request) => await provider.openPullRequest?.('acme/shop', { ...pullRequestOfWork, ...request }),
  };
}

describe('A merge request', () => {
  test('takes three requests to open or update', async () => {
    const { host, open } = await createShop();
    await open();
    expect(host.counts()).toEqual({ project: 1, mergeRequests: 1, mergeRequest: 1 });
    await open({ base: 'next' });
    expect(host.counts()).toEqual({ project: 1, mergeRequests: 1, mergeRequest: 1 });
  });

  // GitLab has no lock: if both asked before one opens, there could be two.
  test('is opened by one of two callers at once before the other asks for it', async () => {
    const { host, project, open } = await createShop();
    await Promise.all([open(), open()]);
    const routes = host.requests.map(({ route }) => route).filter((route) => route !== 'project');
    expect(routes).toEqual(['mergeRequests', 'mergeRequest', 'mergeRequests', 'mergeRequest']);
    expect(host.mergeRequests.of(project)).toHaveLength(1);
  });

  test('is found after more than one page of merge requests from forks', async () => {
    const { host, project, open } = await createShop();
    await open();
    for (let fork = 1; fork <= 120; fork += 1) {
      host.mergeRequests.add(project, { title: 'Of a fork', description: '', sourceBranch: 'work', targetBranch: 'main', sourceProject: fork });
    }
    host.counts();
    expect(await open({ title: 'Sell tea' })).toMatchObject({ number: 1 });
    expect(host.counts()).toEqual({ project: 1, mergeRequests: 2, mergeRequest: 1 });
  });

  test('keeps a draft prefix that its title has already', async () => {
    const { host, project, open } = await createShop();
    await open({ title: '[Draft] Sell coffee', draft: true });
    await open({ title: 'draft: Sell tea' });
    expect(host.mergeRequests.of(project)).toMatchObject([{ title: 'draft: Sell tea' }]);
  });

  test('keeps quick actions as text: GitLab would execute them with the rights of the credential', async () => {
    const { host, project, open } = await createShop();
    for (const end of ['', '\n/approve']) {
      await open({ body: `/merge\r\nSell tea, see /etc\n\r/label ~tea\n\n/Close${end}` });
      const description = ` /merge\nSell tea, see /etc\n /label ~tea\n\n /Close${end && '\n /approve'}`;
      expect(host.mergeRequests.of(project)).toMatchObject([{ description }]);
    }
  });

  test('shortens a title that is too long for GitLab with the draft prefix', async () => {
    const { host, project, open } = await createShop();
    await open({ title: '😀'.repeat(255), draft: true });
    expect(host.mergeRequests.of(project)).toMatchObject([{ title: `Draft: ${'😀'.repeat(247)}…` }]);
  });

  test.each<[string, Fault, RegExp]>([
    ['a token without the scope', { kind: 'status', status: 403, body: { error: 'insufficient_scope' } }, /^pull_request_refused: .*"code":"pull_request_forbidden"/u],
    ['disabled merge requests', { kind: 'status', status: 404, body: { message: '404 Not Found' } }, /^pull_request_refused: .*"code":"pull_request_forbidden"/u],
    ['a token that has expired', { kind: 'status', status: 401, body: { message: '401 Unauthorized' } }, /^provider_unauthorized/u],
    ['a refusal', { kind: 'status', status: 422, body: { message: ['Title is too long'] } }, /^pull_request_refused: .*"code":"host_refused","message":"Title is too long"/u],
    ['a malformed response', { kind: 'body', text: '{"iid":"1"}' }, /malformed_answer/u],
    ['a server error', { kind: 'status', status: 500 }, /server_error/u],
  ])('fails on %s', async (_, fault, failure) => {
    const { host, open } = await createShop();
    host.faults.add({ fault, route: 'mergeRequest' });
    expect(await failureOf(open())).toMatch(failure);
  });
});
