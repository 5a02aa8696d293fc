import { z } from 'zod';

/**
 * What a spec says below `docker:`, in the form of the configuration file. Whatever is left out has its default below. This file
 * loads nothing but the schema library, so that a configuration is checked without Docker's client.
 */
export const dockerSpecSchema = z.strictObject({
  /** Linux capabilities that are kept, without `CAP_`. Default: none. */
  capabilities: z.array(z.string().regex(/^(?!CAP_)[A-Z][A-Z_]*$/, 'is not a capability in upper case, without CAP_')).optional(),
  /** May a program gain rights that its parent lacks (setuid)? Default: no. */
  new_privileges: z.boolean().optional(),
  /** The filter of system calls. Default: the engine's own profile. */
  seccomp: z.enum(['default', 'unconfined']).optional(),
  /** Another OCI runtime of the engine (`runsc`, `kata`). Default: the engine's own. */
  oci_runtime: z.string().regex(/^[\w.-]+$/, 'is not the name of a runtime').optional(),
});

/** Returns the Docker options of a spec with their defaults. Null if they are not of the form above. */
export function dockerSpecOptions(runtimeOptions: Readonly<Record<string, unknown>>) {
  const { data } = dockerSpecSchema.safeParse(runtimeOptions['docker'] ?? {});
  if (data === undefined) return null;
  const { capabilities = [], new_privileges: newPrivileges = false, seccomp = 'default', oci_runtime: ociRuntime = null } = data;
  return { capabilities, newPrivileges, seccomp, ociRuntime };
}
