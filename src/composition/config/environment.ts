import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { fileSchema } from './config.ts';
import { nearest } from './mistakes.ts';
import { settings } from './settings.ts';

/** The variables of a process, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that other programs give meaning to: those of a sandbox, and of the tests. */
const foreign = /^SKEP_(CONFIG|SANDBOX_ID|SANDBOX_MARK|WORKSPACE|PORT_.+|REQUIRE_.+|ENGINE_.+)$/;

/** A warning for each variable that looks like one of Skep's, and is none; an agent may be given one of any name. */
export function unknownVariables(env: Environment, specs: readonly SandboxSpec[] | null): string[] {
  const known = ['SKEP_CONFIG', ...Object.values(settings).map(({ variable }) => variable)];
  const given = new Set((specs ?? []).flatMap(({ agent }) => agent?.secrets ?? []));
  return Object.keys(env)
    .filter((name) => name.startsWith('SKEP_') && !known.includes(name) && !given.has(name) && !foreign.test(name))
    .map((name) => `${name} is set, but Skep knows no such variable; ${advice(name, known)}`);
}

function advice(name: string, known: readonly string[]): string {
  const [word, ...words] = [name, ...known].map((variable) => variable.replace(/^SKEP_/, '').toLowerCase());
  if (word !== undefined && Object.hasOwn(fileSchema.shape, word)) return `${word} belongs in the file that SKEP_CONFIG names`;
  const meant = nearest(word ?? '', words);
  return meant === null ? '`skep doctor` lists those that it knows' : `did you mean SKEP_${meant.toUpperCase()}?`;
}

/** For each variable that a spec's agent is to have, and that has no value: which one, whose, and what comes of it. */
export function unsetSecrets(specs: readonly SandboxSpec[] | null, env: Environment): readonly string[] {
  return (specs ?? []).flatMap(({ id, agent }) =>
    (agent?.secrets ?? []).flatMap((name) => {
      if (env[name] === undefined) return [`${name} is not set: a conversation with the agent of the spec ${id} becomes an ERROR as it starts; ${mend}`];
      return env[name] === '' ? [`${name} is empty: the agent of the spec ${id} gets it so, and can hardly use its model; ${mend}`] : [];
    }),
  );
}

const mend = "set it in the server's environment and start the server again";
