import { z } from 'zod';
import { explained } from '../../../domain/reason.ts';

/**
 * The `docker:` part of a spec, as in the configuration file. The function below adds the defaults. This file imports only the schema
 * library, so a configuration can be checked without Docker's client.
 */
export const dockerSpecSchema = z.strictObject({
  capabilities: z.array(
    z.string().regex(/^(?!CAP_)[A-Z][A-Z_]*$/, 'is not a capability in upper case, without CAP_')
      .describe('a Linux capability in upper case, without CAP_, for example NET_BIND_SERVICE'),
  ).describe('a list of the Linux capabilities to keep, in upper case and without CAP_, for example [NET_BIND_SERVICE]').optional(),
  new_privileges: z.boolean().describe('true if programs can gain privileges that their parent does not have, or false').optional(),
  seccomp: z.enum(['default', 'unconfined']).describe('default or unconfined').optional(),
  oci_runtime: z.string().regex(/^[\w.-]+$/, 'is not the name of a runtime')
    .describe('the name of an OCI runtime that the engine has, for example runsc').optional(),
}).describe('a mapping with settings for Docker only, for example { oci_runtime: runsc }');

/** The least memory of a container. The engine refuses a lower limit. */
export const minMemoryBytes = 6 * 2 ** 20;

export const invalidDockerOptions = explained('the docker part of its spec is not valid; correct the spec');

/** Returns the Docker options of a spec with their defaults. Null if they do not match the schema. */
export function dockerSpecOptions(runtimeOptions: Readonly<Record<string, unknown>>) {
  const { data } = dockerSpecSchema.safeParse(runtimeOptions['docker'] ?? {});
  if (data === undefined) return null;
  const { capabilities = [], new_privileges: newPrivileges = false, seccomp = 'default', oci_runtime: ociRuntime = null } = data;
  return { capabilities, newPrivileges, seccomp, ociRuntime };
}
