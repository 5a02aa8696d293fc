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
  /** Environment variable in which the sandbox's own key is delivered. */
  readonly sessionKeyEnv: string;
  readonly ports: readonly SandboxPort[];
  readonly ready: ReadinessRule;
  readonly resources: SandboxResources;
  readonly rest: RestRule;
}

export interface SandboxPort {
  readonly name: string;
  /** The port inside the sandbox, 1 to 65535. */
  readonly port: number;
}

/** When a sandbox counts as ready, and how long it may take from the start until then. */
export interface ReadinessRule {
  readonly probe:
    | { readonly kind: 'none' }
    | { readonly kind: 'tcp'; readonly port: number }
    | { readonly kind: 'http'; readonly port: number; readonly path: string };
  readonly withinMs: number;
}

export interface SandboxResources {
  /** CPUs, fractions allowed; null is no limit. */
  readonly cpus: number | null;
  readonly memoryBytes: number | null;
  /** Processes and threads. */
  readonly pids: number | null;
}

/** How long a sandbox may rest, in milliseconds, before it goes on to the next tier; null is for ever. */
export interface RestRule {
  /** From the last activity of a running sandbox to its freeze. */
  readonly freezeAfterMs: number | null;
  /** From the freeze to the stop. */
  readonly stopAfterMs: number | null;
  /** From the stop to the deletion. */
  readonly deleteAfterMs: number | null;
}

const secretName = /(secret|token|password|passwd|credential|private|api_?key|access_?key|auth)/i;

/** The environment as it may be shown: the value of a variable whose name tells of a secret is masked. */
export function shownEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, secretName.test(name) ? '**********' : value]),
  );
}
