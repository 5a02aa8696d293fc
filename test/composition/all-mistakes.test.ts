import { expect, test } from 'vitest';
import { configFiles, refusalOf } from './config-files.ts';

const { file } = configFiles();
const refusal = (text: string, env: Readonly<Record<string, string>> = {}) => refusalOf({ ...env, SKEP_CONFIG: file(text) });

test('all mistakes of the file and the variables are reported at once: fields, dependent fields, secrets and unknown variables', () => {
  const env = { SKEP_PORT: 'x', SKEP_PROT: '1', SKEP_LIMITS: '1', SKEP_GIT_PROVIDERS: 'github', SKEP_GITHUB_APP_ID: '7', SKEP_CONFIRM: '1' };
  const { problems, message } = refusal(`specs:
  - id: web
    comand: [x]
    initial_env: { TOKEN: ghp_0123456789abcdefghijABCDEFGHIJ012345 }
    agent: { protocol: acp, command: [x], secrets: [SKEP_CONFIRM] }
  - id: web
`, env);
  const lines = problems.map(({ name, place = '' }) => `${name} ${place.replace(/^.*:/, '')}`.trim());
  expect(lines).toEqual([
    'SKEP_PORT', 'SKEP_GITHUB_APP_INSTALLATION_ID', 'SKEP_GITHUB_APP_KEY_FILE', 'SKEP_PROT', 'SKEP_LIMITS',
    'spec web, comand 3', 'spec web, initial_env.TOKEN 4', 'spec web, id 6',
  ]);
  expect(problems.find(({ name }) => name === 'SKEP_PROT')?.form).toBe('SKEP_PORT: a port from 0 (any that is free) to 65535, for example 3000');
  expect(problems.find(({ name }) => name === 'SKEP_LIMITS')?.form).toMatch(/^limits in the file that SKEP_CONFIG names: a mapping of limits/);
  expect(problems.every(({ form }) => form !== '')).toBe(true);
  expect(message).toContain('8 mistakes');
  // Without a readable file it is not known which variables are secrets of specs, so unknown variables are not reported.
  expect(refusal('specs: [', { SKEP_CONFIRM: '1' }).problems.map(({ name }) => name)).toEqual(['SKEP_CONFIG']);
});

test('a repeated field is refused, even if it is the only mistake', () => {
  expect(refusal('port: 3000\nport: 3001\n').problems).toMatchObject([{ name: 'port', problem: expect.stringContaining('twice') }]);
});
