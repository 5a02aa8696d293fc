import { posix } from 'node:path';
import { Failure } from '../../domain/failure.ts';

/** Returns the failure for an argument that a method of files does not accept. */
export function refusedFiles(argument: keyof typeof codes, message: string): Failure<'invalid_request'> {
  return new Failure('invalid_request', { problems: [{ argument, reason: { code: codes[argument], message } }] });
}

const codes = {
  path: 'sandbox_path',
  directory: 'sandbox_directory',
  archive: 'sandbox_archive',
  workingDir: 'sandbox_working_dir',
} as const;

const maxLength = 4_096;
/** The limit of Linux. */
const maxNameBytes = 255;
/** How many directories a name may lead through. Each of them is looked up or opened. */
export const maxParts = 255;

/**
 * Normalizes the path and removes a slash at its end. Throws `invalid_request`, about the argument `member`, if the path is not absolute or
 * not allowed. A `path` is not the root; a `directory` may be.
 */
export function sandboxPath(path: string, member: 'path' | 'directory' | 'workingDir'): string {
  if (!path.startsWith('/')) throw refusedFiles(member, `${quotedName(path)} is not an absolute path; begin it with a slash`);
  if (path.includes('\0')) throw refusedFiles(member, `${quotedName(path)} holds a NUL character; leave it out`);
  if (path.length > maxLength) throw refusedFiles(member, `a path may have ${maxLength} characters at most`);
  const long = path.split('/').find((name) => Buffer.byteLength(name) > maxNameBytes);
  if (long !== undefined) throw refusedFiles(member, `the name ${quotedName(long)} is longer than ${maxNameBytes} bytes; shorten it`);
  if (partsOf(path).length > maxParts) throw refusedFiles(member, `a path may have ${maxParts} parts at most`);
  if (path.split('/').includes('..')) throw refusedFiles(member, `${quotedName(path)} has a part ".."; name the place itself`);
  const normal = posix.normalize(path);
  if (normal === '/' && member === 'path') throw refusedFiles(member, 'the root has no name; choose a directory in it');
  return normal === '/' ? normal : normal.replace(/\/$/, '');
}

/** Returns the names of the path below the directory. Null if the path is not below it. */
export function partsBelow(directory: string, path: string): readonly string[] | null {
  const above = partsOf(directory);
  const all = partsOf(path);
  return above.every((part, index) => all[index] === part) ? all.slice(above.length) : null;
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

/** Quotes and shortens an untrusted name for a message. */
export function quotedName(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);
}
