import type { AgentSpec } from './agent.ts';

/** A template from which sandboxes are started. */
export interface SandboxSpec {
  readonly id: string;
  readonly description: string | null;
  /** Container image; the process runtime runs the command on the host and ignores it. */
  readonly image: string | null;
  /** The program and its arguments; null is the image's own. */
  readonly command: readonly string[] | null;
  /** Absolute path inside the sandbox; the process runtime maps it to the sandbox's workspace folder. */
  readonly workingDir: string;
  readonly initialEnv: Readonly<Record<string, string>>;
  /** Environment variable that holds the sandbox's own key. */
  readonly sessionKeyEnv: string;
  readonly ports: readonly SandboxPort[];
  readonly ready: ReadinessRule;
  readonly resources: SandboxResources;
  readonly isolation: SandboxIsolation;
  /** What only one runtime understands, by the runtime's name: `{ docker: {...} }`. The runtime's adapter validates its part. */
  readonly runtimeOptions: Readonly<Record<string, unknown>>;
  /** Labels for people who look at the runtime. They can't replace Skep's own labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly rest: RestRule;
  readonly pool: PoolRule;
  /** The coding agent that conversations run in the sandbox; null is none. */
  readonly agent: AgentSpec | null;
}

export interface SandboxPort {
  readonly name: string;
  /** The port inside the sandbox, 1 to 65535. */
  readonly port: number;
}

/** When a sandbox is ready, and how long that may take after it got a start slot. */
export interface ReadinessRule {
  readonly probe:
    | { readonly kind: 'none' }
    | { readonly kind: 'tcp'; readonly port: number }
    | { readonly kind: 'http'; readonly port: number; readonly path: string };
  readonly withinMs: number;
}

/** Limits of a sandbox; null is no limit. */
export interface SandboxResources {
  /** CPUs, fractions allowed. */
  readonly cpus: number | null;
  /** Memory, swap included. */
  readonly memoryBytes: number | null;
  /** Processes and threads. */
  readonly pids: number | null;
  /** Open files of one process. */
  readonly openFiles: number | null;
  /** How much of its output is kept. */
  readonly logBytes: number | null;
}

/** How sandboxes are isolated, as far as every runtime can offer it. */
export interface SandboxIsolation {
  /** Is everything but the working directory and `/tmp` read-only? */
  readonly readOnlyRoot: boolean;
  /** `isolated`: no other sandbox and no metadata address can be reached; `shared`: other sandboxes can; `none`: no network. */
  readonly network: 'isolated' | 'shared' | 'none';
  /** The user that its programs run as, `name` or `uid:gid`; null is the image's own. */
  readonly user: string | null;
}

/** When an idle sandbox is frozen, stopped and deleted, in milliseconds; null is never. */
export interface RestRule {
  /** From the last activity of a running sandbox to its freeze. */
  readonly freezeAfterMs: number | null;
  /** From the freeze to the stop. */
  readonly stopAfterMs: number | null;
  /** From the stop to the deletion. */
  readonly deleteAfterMs: number | null;
  /** From the creation (for a pool member: from its claim) to the deletion, whatever its status. */
  readonly maxLifeMs: number | null;
}

/** How many sandboxes of the spec are kept running for later starts. */
export interface PoolRule {
  readonly size: number;
}

const secretName = /(secret|token|password|passwd|credential|private|api_?key|access_?key|auth)/i;

/** Returns the environment as it may be shown. The values of variables with a secret's name are masked. */
export function shownEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, secretName.test(name) ? '**********' : value]),
  );
}

/** A spec in which members with a default are optional. */
export type SandboxSpecInput = Pick<SandboxSpec, 'id'> & Partial<SandboxSpec>;

/** The limits of a sandbox unless its spec says otherwise. */
export const defaultResources: SandboxResources = {
  cpus: 2,
  memoryBytes: 2 * 2 ** 30,
  pids: 512,
  openFiles: 16_384,
  logBytes: 20 * 2 ** 20,
};

/** The isolation of a sandbox unless its spec says otherwise. */
export const defaultIsolation: SandboxIsolation = { readOnlyRoot: false, network: 'isolated', user: null };

/** Returns the spec with its defaults. */
export function sandboxSpec(input: SandboxSpecInput): SandboxSpec {
  return {
    description: null,
    image: null,
    command: null,
    workingDir: '/workspace',
    initialEnv: {},
    sessionKeyEnv: 'SESSION_API_KEY',
    ports: [],
    ready: { probe: { kind: 'none' }, withinMs: 60_000 },
    resources: defaultResources,
    isolation: defaultIsolation,
    runtimeOptions: {},
    labels: {},
    rest: { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null },
    pool: { size: 0 },
    agent: null,
    ...input,
  };
}
