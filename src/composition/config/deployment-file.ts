import { randomBytes, randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { errorCode } from '../../adapters/shared/system-errors.ts';
import { dnsLabel } from '../../domain/dns-label.ts';

const schema = z.object({
  /** The id that distinguishes this deployment's sandboxes from others on the same engine. */
  id: z.string().regex(dnsLabel),
  /** The runtime of the last start; null before the first one. Sandboxes that it does not have become MISSING. */
  runtime: z.string().nullable(),
  /** Empty in the file of an older version, until {@link ensureDeploymentFile} adds it. */
  secret: z.string().default(''),
});

type DeploymentFile = z.output<typeof schema>;

/** Returns null if there is no file. Throws if it is damaged: with a new id, the deployment would not know its own sandboxes. */
export function readDeploymentFile(dataDir: string): DeploymentFile | null {
  const path = pathOf(dataDir);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    const advice = 'It must be a file that the user who runs Skep can read and write.';
    throw new DeploymentFileDamaged(`The file ${path} can't be read (${String(code)}). ${advice}`, { cause: error });
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    const advice = "Restore it from a copy. Its id is also in the label skep.deployment of the deployment's containers.";
    throw new DeploymentFileDamaged(`The file ${path} is damaged. ${advice}`, { cause: error });
  }
}

export function newDeploymentId(): string {
  return randomBytes(6).toString('hex');
}

export function newSecret(): string {
  return randomBytes(32).toString('hex');
}

/** Returns the file's content. Creates the file if there is none. If several processes create it at once, one wins. */
export function ensureDeploymentFile(dataDir: string, id: string = newDeploymentId()): DeploymentFile {
  const found = readDeploymentFile(dataDir);
  if (found !== null) return found.secret === '' ? replaceDeploymentFile(dataDir, { ...found, secret: newSecret() }) : found;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const draft = writeDraft(dataDir, { id, runtime: null, secret: newSecret() });
  try {
    linkSync(draft, pathOf(dataDir));
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  rmSync(draft);
  const created = readDeploymentFile(dataDir);
  if (created === null) throw new DeploymentFileDamaged(`The file ${pathOf(dataDir)} was removed while it was created.`);
  return created;
}

export function noteRuntime(dataDir: string, runtime: string): void {
  const found = ensureDeploymentFile(dataDir);
  if (found.runtime !== runtime) replaceDeploymentFile(dataDir, { ...found, runtime });
}

function replaceDeploymentFile(dataDir: string, content: DeploymentFile): DeploymentFile {
  renameSync(writeDraft(dataDir, content), pathOf(dataDir));
  return content;
}

class DeploymentFileDamaged extends Error {
  override readonly name = 'DeploymentFileDamaged';
}

function writeDraft(dataDir: string, content: DeploymentFile): string {
  const draft = `${pathOf(dataDir)}.${randomUUID()}`;
  writeFileSync(draft, `${JSON.stringify(content)}\n`, { mode: 0o600, flush: true });
  return draft;
}

function pathOf(dataDir: string): string {
  return join(dataDir, 'deployment.json');
}
