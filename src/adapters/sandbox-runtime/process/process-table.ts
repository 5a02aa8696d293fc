/** A process that lives. Zombies do not count: they hold nothing but their number. */
export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** 0 where the platform does not tell. */
  readonly session: number;
  /** When it began, in the platform's own form; with the pid and the boot it identifies a process for ever. */
  readonly start: string;
  /** It is stopped by a signal. */
  readonly held: boolean;
  /** It is in the kernel and takes no signal now; one that was sent takes effect before it runs on. */
  readonly uninterruptible: boolean;
}

/** The processes of this host. */
export interface ProcessTable {
  readonly kind: 'proc' | 'ps';

  /** What tells this boot of the host from all others. */
  bootId(): Promise<string>;

  /** The process with this number; null when none lives. */
  find(pid: number): Promise<ProcessEntry | null>;

  all(): Promise<readonly ProcessEntry[]>;

  /** Can `process` have begun no earlier than `other`? */
  notBefore(process: ProcessEntry, otherStart: string): boolean;

  /** Does the process have the variable, with the value, in the environment that it began with? */
  hasVariable(process: ProcessEntry, variable: string, value: string): Promise<boolean>;

  /** The environment that the process began with, which `carried` was part of; null where it can't be read any more. */
  environment(process: ProcessEntry): Promise<Readonly<Record<string, string>> | null>;

  /** What a process has to have in its environment besides, so that the environment can be read. */
  carried(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>>;

  /** Sends the signal to the process, if the number still is its own. */
  signal(process: ProcessEntry, signal: NodeJS.Signals): void;

  /** Sends the signal to all members of the group that the process leads, at one moment. */
  signalGroup(leader: ProcessEntry, signal: NodeJS.Signals): void;
}

/** Sends a signal; that nobody is there to take it is no failure. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM'))) throw error;
  }
}
