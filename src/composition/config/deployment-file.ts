import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';

const schema = z.object({ id: z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/), runtime: z.string().nullable() });

/** What a data folder knows of the deployment that it belongs to. */
export interface DeploymentFile {
  /** The deployment's name, by which it knows its own among what others have on the same engine. */
  readonly id: string;
  /** The runtime that its sandboxes were started with; null before the first. */
  readonly runtime: string | null;
}

/** Null where there is none. Throws where it was damaged: a new name would make every sandbox a stranger. */
export function readDeploymentFile(dataDir: string): DeploymentFile | null {
  const path = pathOf(dataDir);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new DeploymentFileDamaged(`The file ${path} can't be read (${String(code)}). Make it a file that the user who runs Skep may read and write.`, { cause: error });
  }
  const read = schema.safeParse(parsed(text));
  if (read.success) return read.data;
  throw new DeploymentFileDamaged(`The file ${path} is damaged. Restore it from a copy; the containers of this deployment carry its id in the label skep.deployment.`);
}

/** A name that nobody else has. */
export function newDeploymentId(): string {
  return randomBytes(6).toString('hex');
}

/** The file's content; made where there is none, whoever else makes one meanwhile. */
export function ensureDeploymentFile(dataDir: string): DeploymentFile {
  const found = readDeploymentFile(dataDir);
  if (found !== null) return found;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  write(dataDir, { id: newDeploymentId(), runtime: null }, (from, to) => {
    try {
      linkSync(from, to);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    rmSync(from);
  });
  const made = readDeploymentFile(dataDir);
  if (made === null) throw new DeploymentFileDamaged(`The file ${pathOf(dataDir)} can't be made.`);
  return made;
}

/** Writes down which runtime serves. */
export function noteRuntime(dataDir: string, runtime: string): void {
  const found = ensureDeploymentFile(dataDir);
  if (found.runtime !== runtime) write(dataDir, { ...found, runtime }, renameSync);
}

class DeploymentFileDamaged extends Error {
  override readonly name = 'DeploymentFileDamaged';
}

function write(dataDir: string, content: DeploymentFile, place: (from: string, to: string) => void): void {
  const path = pathOf(dataDir);
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, `${JSON.stringify(content)}\n`, { mode: 0o600, flush: true });
  place(draft, path);
}

function pathOf(dataDir: string): string {
  return join(dataDir, 'deployment.json');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
