/** What is wrong with what a start asks for. */
export interface ParameterReasonData {
  /** Skep sets these variables itself, or they are secrets. */
  env_reserved: { readonly names: readonly string[] };
  env_credential: { readonly names: readonly string[] };
  secrets_not_allowed: { readonly names: readonly string[]; readonly allowed: readonly string[] };
  timeout_above_spec: { readonly maxMs: number };
  /** Null if the spec gives no bound. */
  resource_above_spec: { readonly resource: 'cpus' | 'memory_bytes' | 'pids'; readonly max: number | null };
  /** The runtime limits none. */
  resources_not_limited: unknown;
}
