import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { configFiles, refusalOf } from './config-files.ts';

const { file } = configFiles();
const problemsOf = (text: string): string[] => refusalOf({ SKEP_CONFIG: file(text) }).problems.map(({ name, problem }) => `${name}: ${problem}`);

const specWith = (fields: string) => `specs: [{ id: a, ${fields} }]`;

describe('a value in a spec', () => {
  test.each([
    'postgres://shop:hunter2@db.example.com/shop', 'ghp_0123456789abcdefghijABCDEFGHIJ012345', 'glpat-0123456789abcdefghij', 'xoxb-0123456789-abcdef',
    'sk-proj-0123456789abcdefGHIJ', 'AKIAIOSFODNN7EXAMPLE', '-----BEGIN OPENSSH PRIVATE KEY-----',
    'postgres://u:p/w@db/x', 'postgres://u:p@w@db/x', ['sk', 'live', '4eC39HqLyjWDarjtT1zdp7dc'].join('_'), 'hf_abcdefghijklmnopqrstuvwxyzABCDEF12',
    'glrt-01234567890123456789', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r',
  ])('is refused as a credential in fields that every key can read, and not shown: %s', (secret) => {
    const advice = /looks like a credential.* secrets; if it is not a secret, set allow_plain_secrets: true/;
    const [inEnv, ...more] = problemsOf(specWith(`initial_env: { OTHER: x, URL: "${secret}" }`));
    expect([inEnv, more]).toEqual([expect.stringMatching(advice), []]);
    expect(inEnv).toContain('initial_env.URL');
    expect(inEnv).not.toContain(secret);
    const inOthers = problemsOf(specWith(`description: "x ${secret}", labels: { dsn: "${secret}" }`));
    expect(inOthers).toEqual([expect.stringMatching(advice), expect.stringMatching(advice)]);
    expect(inOthers.join()).not.toContain(secret);
    expect(problemsOf(specWith(`command: [serve, --with, "${secret}"]`))).toEqual([expect.stringMatching(advice)]);
    expect(readConfig({ SKEP_CONFIG: file(specWith(`initial_env: { URL: "${secret}" }, allow_plain_secrets: true`)) }).specs).toHaveLength(1);
  });

  test.each(['https://example.com/a:b@c', 'user@example.com', 'sk-short', 'a:b@c', 'http://127.0.0.1:8000/x',
    'psql postgres://app:$PGPASSWORD@db/app', 'postgres://app:${PW}@db/app', 'https://x:$(cat /run/t)@h/', 'http://registry:4873/@scope/package',
    'sk-this-is-just-a-long-slug-name-2', 'http://a.example:80 b@c',
  ])('is accepted if it is not a credential: %s', (text) => {
    expect(readConfig({ SKEP_CONFIG: file(specWith(`initial_env: { URL: "${text}" }`)) }).specs).toHaveLength(1);
  });
});
