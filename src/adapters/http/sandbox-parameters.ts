import { z } from 'zod';
import { canonicalJson } from '../../domain/fingerprint.ts';
import { parameterLimits, type SandboxParameters } from '../../domain/sandbox-parameters.ts';
import { list, specId, text } from './common-schemas.ts';

const limits = parameterLimits;

export const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be a name of letters, digits and _ that does not begin with a digit');

const boundedRecord = <K extends z.core.$ZodRecordKey, V extends z.ZodType>(max: number, key: K, value: V) =>
  z
    .record(key, value)
    .refine((entries) => Object.keys(entries).length <= max, `must have at most ${max} members`)
    .meta({ maxProperties: max });

const env = boundedRecord(limits.variables, variableName, text(limits.envCharacters)).refine(
  (variables) => Object.entries(variables).flat().join('').length <= limits.envCharacters,
  `must have at most ${limits.envCharacters} characters in all`,
);

/** A key contains no `=`, which separates key and value in a query. */
// oxlint-disable-next-line no-control-regex -- they have no place in a key
const metadataKey = text(limits.metadataKey).regex(/^[^=\u0000-\u001f\u007f]+$/, 'must not be empty or contain = or a control character');

/** A field for which null and a missing value mean the same: the spec decides. */
const optional = <S extends z.ZodType>(schema: S, description: string) => schema.nullish().describe(description);

/**
 * Some generators of clients read `exclusiveMinimum` as a boolean, as in OpenAPI 3.0. So the document has the smallest share of a CPU that
 * has an effect of its own: Docker rounds less up to it.
 */
const cpus = z.number().positive().meta({ override: { exclusiveMinimum: undefined, minimum: 0.01 } });

export const sandboxParameterFields = {
  env: optional(env, "Variables for the sandbox's command. They are added to those of the spec, or replace them. No response shows them."),
  metadata: optional(
    boundedRecord(limits.metadata, metadataKey, text(limits.metadataValue)),
    'Keys and values to find the sandbox by. Visible to everybody who can read the sandbox.',
  ),
  timeout_seconds: optional(
    z.int().min(1).max(limits.timeoutSeconds),
    'The sandbox is deleted this long after its creation, even if it is in use. At most `max_life` of the spec, which is the default.',
  ),
  resources: optional(
    z
      .strictObject({ cpus, memory_bytes: z.int().min(1), pids: z.int().min(1) })
      .partial()
      .meta({ id: 'ChosenResources' }),
    'The limits of the sandbox. Each is at most the limit of the spec, which is the default.',
  ),
  secrets: optional(
    z.array(variableName).max(limits.variables).meta({ example: ['NPM_TOKEN'] }),
    "Names of variables of the server's environment that the sandbox's command gets. The spec's `allowed_secrets` must have them.",
  ),
};

export const sandboxStartFields = {
  sandbox_spec_id: specId.nullable().default(null).describe('The spec of the new sandbox. Default: the first spec of the deployment.'),
  ...sandboxParameterFields,
};

const parametersBody = z.object(sandboxParameterFields);

export const sandboxParameterNames = parametersBody.keyof().options;

/** The parameters that only other entry adapters set. */
type NotInBody = 'pauseAtTimeout';

/** Splits the body of a start into the sandbox's parameters and the other fields. Compiles only if it handles every parameter. */
export function splitStartBody<B extends z.output<typeof parametersBody>>(
  body: B,
): { readonly parameters: SandboxParameters; readonly others: Omit<B, keyof typeof sandboxParameterFields> } {
  const { env, metadata, timeout_seconds: seconds, resources, secrets, ...others } = body;
  const { cpus, memory_bytes: memoryBytes, pids } = resources ?? {};
  const parameters = {
    env: env ?? undefined,
    metadata: metadata ?? undefined,
    timeoutMs: seconds == null ? undefined : seconds * 1000,
    resources: resources == null ? undefined : { cpus, memoryBytes, pids },
    secrets: secrets ?? undefined,
  } satisfies Record<Exclude<keyof SandboxParameters, NotInBody>, unknown>;
  return { parameters, others };
}

/** Returns the parameters for the idempotency claim of a start. Without parameters it is empty, so older claims still match. */
export function claimedParameters(parameters: SandboxParameters): { readonly parameters?: string } {
  const given = canonicalJson(parameters);
  return given === '{}' ? {} : { parameters: given };
}

const pair = text(limits.metadataKey + 1 + limits.metadataValue).regex(/^[^=]+=/, 'must be key=value').meta({ example: 'task=42' });

/** Pairs of `key=value` in a query, parsed to an object. */
export const metadataQuery = list(z.array(pair).max(limits.metadata)).transform((pairs, context) => {
  const entries = pairs.map((one): [string, string] => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]);
  const metadata = Object.fromEntries(entries);
  if (Object.keys(metadata).length < entries.length) context.addIssue('must name each key once');
  return metadata;
});
