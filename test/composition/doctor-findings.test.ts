import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { inSnakeCase } from '../../src/adapters/shared/snake-case.ts';
import {
  finding, type FindingCode, type FindingData, findings, findingsText, hasFailed,
} from '../../src/composition/executable/doctor-findings.ts';

type Examples = { readonly [Code in FindingCode]: FindingData<Code> };

const none = {};
const dataDir = '/var/lib/skep';
const git = { provider: 'github', detail: 'api.github.com answers' };
const image = { specId: 'node', image: 'node:26' };
const ociRuntime = { specId: 'node', ociRuntime: 'runsc' };
const secret = { specId: 'node', name: 'MODEL_KEY' };
const address = { host: '127.0.0.1', port: 3000 };

/** One example of every finding. A missing one is a compile error. */
const examples: Examples = {
  configuration_invalid: { detail: 'The configuration has a mistake', problems: [{ name: 'SKEP_PORT', problem: 'is wrong', form: 'a port' }] },
  configuration_warning: { detail: 'SKEP_PROT is set, but it is not a known variable' },
  check_failed: { part: 'store', reason: 'locked', detail: 'The data folder is open in another process.' },
  store_ok: { dataDir, keys: 1, detail: 'sqlite: answers' },
  store_absent: { dataDir },
  store_older: { dataDir, schema: 3, currentSchema: 5 },
  store_log_lost: { dataDir },
  store_lost: { dataDir },
  store_failed: { dataDir, detail: 'sqlite: The disk is full.' },
  sandbox_in_quarantine: { sandboxId: 'sb-1', statusReason: { code: 'quarantined', keptForMs: 86_400_000, specId: 'node', ownerId: null } },
  api_key_static: none,
  api_key_stored: { name: 'ci', access: 'full' },
  api_key_read_only: { name: 'ci', access: 'read' },
  api_key_not_of_store: none,
  api_key_invalid: none,
  git_provider_ok: git,
  git_provider_failed: git,
  runtime_chosen: { runtime: 'docker' },
  runtime_warning: { runtime: 'process', detail: 'sandboxes are plain processes' },
  runtime_ok: { runtime: 'docker', detail: 'engine 29 answers' },
  runtime_failed: { runtime: 'docker', detail: 'start Docker', engine: 'unix:///var/run/docker.sock' },
  disk_ok: { usedPercent: 40, limitPercent: 90 },
  disk_full: { usedPercent: 95, limitPercent: 90 },
  disk_unknown: {},
  engine_ok: { version: '29.1', apiVersion: '1.52', cgroupVersion: '2', cgroupDriver: null, ociRuntimes: ['runc', 'runsc'] },
  engine_without_swap_limit: none,
  oci_runtime_ok: ociRuntime,
  oci_runtime_missing: ociRuntime,
  image_ok: { ...image, architecture: 'arm64', bytes: 123_456_789 },
  image_absent: image,
  image_not_named: { specId: 'node' },
  secret_ok: secret,
  secret_not_set: { ...secret, detail: 'MODEL_KEY is not set' },
  address_free: address,
  address_of_skep: address,
  address_in_use: { ...address, variable: 'SKEP_PORT' },
  address_refused: { ...address, reason: 'EACCES', detail: 'this user may not listen on the port' },
};

const codes = Object.keys(findings) as FindingCode[];
const all = codes.map((code) => finding(code, examples[code]));

test('the message of each finding', () => {
  expect(`\n${findingsText(all)}`).toMatchSnapshot();
});

test('the JSON of findings has a message and data in the format of the API', () => {
  expect(inSnakeCase([finding('sandbox_in_quarantine', examples.sandbox_in_quarantine)])).toEqual([{
    code: 'sandbox_in_quarantine', state: 'warning', message: expect.stringMatching(/^the sandbox sb-1 is in quarantine: /),
    data: { sandbox_id: 'sb-1', status_reason: { code: 'quarantined', kept_for_ms: 86_400_000, spec_id: 'node', owner_id: null } },
  }]);
});

test('only findings with the state failed make the command fail', () => {
  expect(all.filter((each) => hasFailed([each])).map(({ code }) => code)).toEqual(codes.filter((code) => findings[code].state === 'failed'));
  expect(hasFailed([finding('store_absent', { dataDir }), finding('image_absent', image)])).toBe(false);
});

test('every code is documented with its state, in the same order', () => {
  const documented = readFileSync(join(import.meta.dirname, '../../docs/running.md'), 'utf8');
  const rows = [...documented.matchAll(/^\| `([a-z_]+)` \| (ok|warning|failed) \|/gm)].map(([, code, state]) => ({ code, state }));
  expect(rows).toEqual(all.map(({ code, state }) => ({ code, state })));
});
