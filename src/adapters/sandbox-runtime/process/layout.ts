import { join } from 'node:path';

/**
 * Where everything of the runtime lies. All of it is below one folder that only its owner can enter:
 *
 * - `<id>/workspace/`: the sandbox's own files.
 * - `<id>/launches/`: Skep's records of each time that the command was run, see `records.ts`.
 * - `<id>/output.log`: what the command wrote to its standard output and error.
 * - `.ports/<port>`: a link whose text is the id of the sandbox that the port is reserved for.
 * - `.trash/`: what is half made or half removed. It is never seen as a sandbox.
 */
export interface Layout {
  readonly root: string;
  readonly trash: string;
  readonly ports: string;
  sandbox(id: string): SandboxLayout;
}

export interface SandboxLayout {
  readonly folder: string;
  readonly workspace: string;
  readonly launches: string;
  readonly log: string;
}

export function createLayout(root: string): Layout {
  return {
    root,
    trash: join(root, '.trash'),
    ports: join(root, '.ports'),
    sandbox: (id) => sandboxLayout(join(root, id)),
  };
}

export function sandboxLayout(folder: string): SandboxLayout {
  return {
    folder,
    workspace: join(folder, 'workspace'),
    launches: join(folder, 'launches'),
    log: join(folder, 'output.log'),
  };
}

const dnsLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** May this id become a part of a path? */
export function isSandboxId(id: string): boolean {
  return dnsLabel.test(id);
}
