import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { fileSchema } from './file-schema.ts';
import { nearest } from './mistakes.ts';
import { settings } from './settings.ts';

/** Variables that are not settings: those of a sandbox, and of the tests. */
const foreign = /^SKEP_(CONFIG|SANDBOX_ID|SANDBOX_MARK|WORKSPACE|PORT_.+|REQUIRE_.+|ENGINE_.+)$/;

/** Returns a warning for each variable that looks like a setting and is none. An agent's secret may have any name. */
export function unknownVariables(env: NodeJS.ProcessEnv, specs: readonly SandboxSpec[] | null): string[] {
  const known = ['SKEP_CONFIG', ...settings.map(({ variable }) => variable)];
  const given = new Set((specs ?? []).flatMap(({ agent }) => agent?.secrets ?? []));
  return Object.keys(env)
    .filter((name) => name.startsWith('SKEP_') && !known.includes(name) && !given.has(name) && !foreign.test(name))
    .map((name) => `${name} is set, but Skep knows no such variable; ${meaning(name, known)}`);
}

function meaning(name: string, known: readonly string[]): string {
  const [word = '', ...words] = [name, ...known].map((variable) => variable.replace(/^SKEP_/, '').toLowerCase());
  if (Object.hasOwn(fileSchema.shape, word)) return `${word} belongs in the file that SKEP_CONFIG names`;
  const meant = nearest(word, words);
  return meant === null ? '`skep doctor` lists those that it knows' : `did you mean SKEP_${meant.toUpperCase()}?`;
}

/** Returns a warning for each secret of a spec's agent that has no value, with its consequence. */
export function unsetSecrets(specs: readonly SandboxSpec[] | null, env: NodeJS.ProcessEnv): readonly string[] {
  const warningOf = (id: string, name: string): string[] => {
    if (env[name] === '') return [`${name} is empty: the agent of the spec ${id} gets an empty value; ${advice}`];
    if (env[name] !== undefined) return [];
    return [`${name} is not set: each conversation with the agent of the spec ${id} becomes an ERROR as it starts; ${advice}`];
  };
  return (specs ?? []).flatMap(({ id, agent }) => (agent?.secrets ?? []).flatMap((name) => warningOf(id, name)));
}

const advice = "set it in the server's environment and start the server again";
