import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { configFiles, refusalOf } from './config-files.ts';

const { file } = configFiles();

describe('a token for a git host', () => {
  const github = { SKEP_GIT_PROVIDERS: 'github', SKEP_GITHUB_TOKEN: 'ghp_secret' };
  const gitlab = { SKEP_GIT_PROVIDERS: 'gitlab', SKEP_GITLAB_TOKEN: 'glpat-secret' };

  test.each([
    ['SKEP_GITHUB_URL', { ...github, SKEP_GITHUB_URL: 'http://git.internal/api/v3' }],
    ['SKEP_GITLAB_URL', { ...gitlab, SKEP_GITLAB_URL: 'http://git.internal:8080' }],
    ['SKEP_GITLAB_URL', { ...gitlab, SKEP_GITLAB_URL: 'http://127.evil.example' }],
  ])('is refused with plain http in %s', (name, env) => {
    expect(refusalOf(env).problems).toMatchObject([{ name, problem: expect.stringContaining('is plain http') }]);
  });

  test('is refused with plain http in the file, with the line', () => {
    const path = file('git_providers: [github]\ngithub_url: http://git.internal/api/v3\n');
    const { problems } = refusalOf({ SKEP_CONFIG: path, SKEP_GITHUB_TOKEN: 'ghp_secret' });
    expect(problems).toMatchObject([{ name: 'github_url', place: `${path}:2`, problem: expect.stringContaining('is plain http') }]);
  });

  test.each([
    { ...github, SKEP_GITHUB_URL: 'http://git.internal/api/v3', SKEP_GIT_HTTP_HOSTS: 'other,git.internal' },
    { ...gitlab, SKEP_GITLAB_URL: 'http://git.internal:8080', SKEP_GIT_HTTP_HOSTS: 'git.internal:8080' },
    { ...gitlab, SKEP_GITLAB_URL: 'http://127.0.0.1:8080' },
    { ...gitlab, SKEP_GITLAB_URL: 'http://localhost:8080' },
    { ...gitlab, SKEP_GITLAB_URL: 'http://[::1]:8080' },
    { SKEP_GIT_PROVIDERS: 'gitlab', SKEP_GITLAB_URL: 'http://git.internal' },
  ])('is accepted with an allowed or local host, and plain http is accepted without a token: %j', (env) => {
    expect(() => readConfig(env)).not.toThrow();
  });
});
