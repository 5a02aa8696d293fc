import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { configFiles } from './config-files.ts';

const { file } = configFiles();

describe('the warning about an unknown variable', () => {
  test.each([
    ['SKEP_PROT', 'SKEP_PORT'],
    ['SKEP_LOGLEVEL', 'SKEP_LOG_LEVEL'],
    ['SKEP_GITHUB_TOKN', 'SKEP_GITHUB_TOKEN'],
    ['SKEP_CONFG', 'SKEP_CONFIG'],
    ['SKEP_LIMITS', 'limits belongs in the file'],
  ])('suggests for %s what was probably meant', (variable, meant) => {
    expect(readConfig({ [variable]: 'x' }).warnings).toEqual([expect.stringMatching(new RegExp(`^${variable} is set.* ${meant}`))]);
  });

  test('names the variable and the command that lists the known ones, and is not given for variables of a sandbox', () => {
    expect(readConfig({ SKEP_XYZZY: '1', SKEP_PORT_8000: '1', SKEP_SANDBOX_ID: 'x' }).warnings).toEqual([expect.stringMatching(/SKEP_XYZZY is set.*`npm run -s skep -- doctor`/)]);
  });
});

describe('the warnings about addresses that other machines cannot use', () => {
  test.each<[Record<string, string>, readonly RegExp[]]>([
    [{}, []],
    [{ SKEP_HOST: '::1' }, []],
    [{ SKEP_HOST: '0.0.0.0' }, [/^SKEP_HOST is 0\.0\.0\.0, .*set SKEP_PUBLIC_URL/, /exposed_urls.*set SKEP_PROXY_URL/]],
    [{ SKEP_HOST: '0.0.0.0', SKEP_PROXY_PORT: 'off', SKEP_PUBLIC_URL: 'https://skep.example.com' }, [/exposed_urls.*set SKEP_DOCKER_PUBLISH_ADDRESS/]],
    [{ SKEP_HOST: '0.0.0.0', SKEP_PUBLIC_URL: 'https://skep.example.com', SKEP_PROXY_URL: 'https://sandboxes.example.com' }, []],
    [{ SKEP_PUBLIC_URL: 'https://skep.example.com' }, [/exposed_urls and links.*set SKEP_PROXY_URL/]],
    [{ SKEP_PUBLIC_URL: 'https://skep.example.com', SKEP_PROXY_PORT: 'off' }, []],
    [{ SKEP_PUBLIC_URL: 'http://10.0.0.5:3000', SKEP_HOST: '10.0.0.5' }, []],
    [{ SKEP_PUBLIC_URL: 'http://localhost:3000' }, []],
    [{ SKEP_DOCKER_PUBLISH_ADDRESS: '0.0.0.0' }, [/^SKEP_DOCKER_PUBLISH_ADDRESS is 0\.0\.0\.0, .*set SKEP_DOCKER_URL_HOST/]],
    [{ SKEP_DOCKER_PUBLISH_ADDRESS: '::', SKEP_DOCKER_URL_HOST: 'build-7' }, []],
  ])('name the setting that is missing: %j', (env, warnings) => {
    expect(readConfig(env).warnings).toEqual(warnings.map((text) => expect.stringMatching(text)));
  });
});

describe('a rule of rest that counts from a state that no rule leads to', () => {
  test.each<[string, readonly RegExp[]]>([
    ['{ freeze_after: 15m, stop_after: 2h, delete_after: 10d, max_life: 30d }', []],
    ['{ freeze_after: 15m, stop_after: 2h }', []],
    ['{ max_life: 30d }', []],
    ['{ stop_after: 2h, delete_after: 10d }', [/^spec a: rest\.stop_after counts from the freeze.*add freeze_after/]],
    ['{ freeze_after: 15m, delete_after: 10d }', [/^spec a: rest\.delete_after counts from the stop.*add stop_after/]],
  ])('is warned of: %s', (rest, warnings) => {
    expect(readConfig({ SKEP_CONFIG: file(`specs: [{ id: a, rest: ${rest} }]`) }).warnings).toEqual(warnings.map((text) => expect.stringMatching(text)));
  });
});

describe('the warning about a proxy that requests to APIs do not use', () => {
  const proxy = { HTTPS_PROXY: 'http://me:password@proxy.example.com:3128', SKEP_GIT_PROVIDERS: 'github,local' };
  test.each<[Record<string, string>, readonly RegExp[]]>([
    [proxy, [/^HTTPS_PROXY is set, .*NODE_USE_ENV_PROXY=1.* 127\.0\.0\.1,localhost,::1 in NO_PROXY$/]],
    [{ http_proxy: 'http://proxy.example.com:3128', SKEP_GIT_PROVIDERS: 'gitlab' }, [/^http_proxy is set/]],
    [{ ...proxy, NODE_USE_ENV_PROXY: '1' }, []],
    [{ ...proxy, NODE_OPTIONS: '--max-old-space-size=512 --use-env-proxy' }, []],
    [{ ...proxy, HTTPS_PROXY: '' }, []],
    [{ ...proxy, SKEP_GIT_PROVIDERS: 'local' }, []],
  ])('names what is missing: %j', (env, warnings) => {
    expect(readConfig(env).warnings).toEqual(warnings.map((text) => expect.stringMatching(text)));
  });
});
