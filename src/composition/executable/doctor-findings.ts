import { sentenceOf } from '../../adapters/shared/failure-sentences.ts';
import { commandName } from '../../client/command-name.ts';
import type { Reason } from '../../domain/reason.ts';
import type { ConfigProblem } from '../config/config-error.ts';
import { storeWarningText } from '../store-warnings.ts';

/** The result of a check. `warning`: nothing fails, but a person should know it. */
export interface Finding {
  readonly code: FindingCode;
  readonly state: FindingState;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

type FindingState = 'ok' | 'warning' | 'failed';

interface Entry<Data> {
  readonly state: FindingState;
  readonly message: (data: Data) => string;
}

const entry = (state: FindingState) => <Data = object>(message: Entry<Data>['message']): Entry<Data> => ({ state, message });
const [ok, warning, failed] = [entry('ok'), entry('warning'), entry('failed')];

interface Store { readonly dataDir: string }
interface Detail { readonly detail: string }
interface Address { readonly host: string; readonly port: number }
interface SpecSecret { readonly specId: string; readonly name: string }
interface SpecImage { readonly specId: string; readonly image: string }
interface SpecRuntime { readonly specId: string; readonly ociRuntime: string }
interface DiskShare { readonly usedPercent: number; readonly limitPercent: number }
interface Engine {
  readonly version: string;
  readonly apiVersion: string;
  readonly cgroupVersion: string | null;
  readonly cgroupDriver: string | null;
  readonly ociRuntimes: readonly string[];
}

const key = 'the key in SKEP_API_KEY';
const store = ({ dataDir }: Store): string => `store sqlite in ${dataDir}`;
const address = ({ host, port }: Address): string => `address ${host}:${port}`;

/** All findings of `doctor`. Scripts rely on codes and data, so both must not change. */
export const findings = {
  configuration_invalid: failed<Detail & { readonly problems: readonly ConfigProblem[] }>(({ detail }) => detail),
  configuration_warning: warning<Detail>(({ detail }) => detail),
  check_failed: failed<Detail & { readonly part: string; readonly reason: string | null }>(({ part, detail }) => `${part}: ${detail}`),

  store_ok: ok<Store & Detail & { readonly keys: number }>(({ keys, detail, ...at }) =>
    `${store(at)}: ${detail}; ${keys === 1 ? 'one key' : `${keys} keys`}`),
  store_absent: ok<Store>((at) => `${store(at)}: does not exist yet; the first start creates it`),
  store_older: warning<Store & { readonly schema: number; readonly currentSchema: number }>(({ schema, currentSchema, ...at }) =>
    `${store(at)}: from an older version (schema ${schema}, this version's is ${currentSchema}); `
    + `\`${commandName} serve\` upgrades it`),
  store_log_lost: warning<Store>(({ dataDir }) => storeWarningText({ code: 'log_lost', dataDir })),
  store_lost: warning<Store>(({ dataDir }) => storeWarningText({ code: 'store_lost', dataDir })),
  store_failed: failed<Store & Detail>(({ detail, ...at }) => `${store(at)}: ${detail}`),
  sandbox_in_quarantine: warning<{ readonly sandboxId: string; readonly statusReason: Reason | null }>(({ sandboxId, statusReason }) =>
    [
      `the sandbox ${sandboxId} is in quarantine${statusReason === null ? '.' : `: ${sentenceOf(statusReason)}`}`,
      `Adopt or delete it: ${commandName} sandboxes adopt, ${commandName} sandboxes delete`,
    ].join(' ')),

  api_key_static: ok(() => `${key} is valid as long as it is set for the server`),
  api_key_stored: ok<{ readonly name: string; readonly access: string }>(({ name }) => `${key} is the key ${name} of the store`),
  api_key_read_only: warning<{ readonly name: string; readonly access: string }>(({ name }) =>
    `${key} is the key ${name} of the store, which can only read: requests that change something are refused`),
  api_key_not_of_store: warning(() =>
    `${key} was created by Skep, but not for this store: it has full access, can not be revoked, `
    + 'and is valid as long as it is set for the server'),
  api_key_invalid: failed(() => `${key} was revoked or has expired: every request with it is refused`),

  git_provider_ok: ok<Detail & { readonly provider: string }>(({ provider, detail }) => `git ${provider}: ${detail}`),
  git_provider_failed: failed<Detail & { readonly provider: string }>(({ provider, detail }) => `git ${provider}: ${detail}`),

  runtime_chosen: ok<{ readonly runtime: string }>(({ runtime }) => `runtime ${runtime}: chosen by SKEP_SANDBOX_RUNTIME=auto`),
  runtime_warning: warning<Detail & { readonly runtime: string }>(({ detail }) => detail),
  runtime_ok: ok<Detail & { readonly runtime: string }>(({ runtime, detail }) => `runtime ${runtime}: ${detail}`),
  runtime_failed: failed<Detail & { readonly runtime: string; readonly engine: string | null }>(({ runtime, detail, engine }) =>
    `runtime ${runtime}: ${detail}${engine === null ? '' : ` (address: ${engine})`}`),
  disk_ok: ok<DiskShare>(({ usedPercent, limitPercent }) =>
    `disk: ${usedPercent}% used, the limit is ${limitPercent}% (SKEP_DISK_USED_PERCENT)`),
  disk_full: warning<DiskShare>(({ usedPercent, limitPercent }) =>
    `disk: ${usedPercent}% used, more than the ${limitPercent}% of SKEP_DISK_USED_PERCENT; `
    + 'no sandbox is started, and stopped sandboxes with a delete_after are deleted early'),
  disk_unknown: warning(() =>
    "disk: the runtime can't tell how full it is, so SKEP_DISK_USED_PERCENT has no effect; watch it on the engine's machine"),
  engine_ok: ok<Engine>(({ version, apiVersion, cgroupVersion, cgroupDriver, ociRuntimes }) =>
    `engine ${version}, API ${apiVersion}, cgroup ${cgroupVersion ?? 'unknown'} by ${cgroupDriver ?? 'unknown'}, `
    + `OCI runtimes ${ociRuntimes.join(', ')}`),
  engine_without_swap_limit: warning(() =>
    'engine: its kernel does not limit swap, so a sandbox can use swap beyond its memory limit; boot with swapaccount=1, or without swap'),
  oci_runtime_ok: ok<SpecRuntime>(({ specId, ociRuntime }) => `spec ${specId}: the OCI runtime ${ociRuntime} is there`),
  oci_runtime_missing: failed<SpecRuntime>(({ specId, ociRuntime }) =>
    `spec ${specId}: the engine has no OCI runtime ${ociRuntime}; install it and name it in the engine's daemon.json, `
    + 'or remove docker.oci_runtime from the spec'),
  image_ok: ok<SpecImage & { readonly architecture: string; readonly bytes: number }>(({ specId, image, architecture, bytes }) =>
    `spec ${specId}: image ${image} is there (${architecture}, ${Math.round(bytes / 1e6)} MB)`),
  image_absent: warning<SpecImage>(({ specId, image }) =>
    `spec ${specId}: image ${image} is not there; the first start pulls it, or pull it now: ${commandName} pull ${specId}`),
  image_not_named: failed<{ readonly specId: string }>(({ specId }) => `spec ${specId}: it names no image, but Docker needs one`),

  secret_ok: ok<SpecSecret>(({ specId, name }) => `spec ${specId}: the secret ${name} is set`),
  secret_not_set: failed<SpecSecret & Detail>(({ detail }) => detail),

  address_free: ok<Address>((at) => `${address(at)} is free`),
  address_of_skep: ok<Address>((at) => `${address(at)} in use by a Skep server`),
  address_in_use: failed<Address & { readonly variable: string }>(({ variable, ...at }) =>
    `${address(at)}: another program uses it; set ${variable} to another port`),
  address_refused: failed<Address & Detail & { readonly reason: string }>(({ detail, ...at }) => `${address(at)}: ${detail}`),
};

export type FindingCode = keyof typeof findings;
export type FindingData<Code extends FindingCode> = Parameters<(typeof findings)[Code]['message']>[0];

export function finding<Code extends FindingCode>(code: Code, data: FindingData<Code>): Finding {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the signature says which data belongs to the code
  const { state, message } = findings[code] as unknown as Entry<FindingData<Code>>;
  return { code, state, message: message(data), data: { ...data } };
}

const marks: Readonly<Record<FindingState, string>> = { ok: 'ok     ', warning: 'warning', failed: 'NOT OK ' };

export function findingsText(found: readonly Finding[]): string {
  return found.map(({ state, message }) => `  ${marks[state]} ${message}\n`).join('');
}

export function hasFailed(found: readonly Finding[]): boolean {
  return found.some(({ state }) => state === 'failed');
}
