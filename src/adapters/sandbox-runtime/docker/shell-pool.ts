import { randomUUID } from 'node:crypto';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { HostExecution } from '../execution-host.ts';
import { maxCertainCode } from '../execution-reader.ts';
import type { OwnExecution } from './execution.ts';
import { type MarkedOutput, splitAtMarks } from './marked-output.ts';

/** How long a shell waits for its next command. */
const waitMs = 60_000;
/** How many shells wait in all containers. To an engine behind SSH, each has a process of its own. */
const maxWaiting = 200;
/** How often to check whether a shell has begun its command. After the second check it is killed, unless the sandbox is frozen. */
const checkMs = { waiting: 2_500, new: 10_000 };

export type BegunExecution = HostExecution & Pick<OwnExecution, 'leave'>;

/** Why the engine could not start a command. */
export interface RefusedCommand {
  readonly refusal: string;
}

export interface ShellCommand {
  /** See `shellLine`. */
  readonly line: string;
  /** The value of the environment variable that marks its processes, if they end with this process. */
  readonly mark: string;
  /**
   * No process of the command writes to the outputs after its end. Otherwise the shell runs no other command, unless `outlive` says that
   * the command is durable.
   */
  readonly leavesNoProcesses: boolean;
}

/**
 * Runs commands in shells that stay in the containers for a time, see `shellCommand`. Only the first command of a shell waits until the
 * engine has started a process.
 */
export class ShellPool {
  /** The lines that the shells add to the outputs begin with it. Its first byte is rare, which keeps the search for it fast. */
  readonly mark = `\u001e${randomUUID()}`;
  /** By container. A second one in a container would rarely be needed. */
  readonly #waiting = new Map<string, { readonly shell: Shell; readonly timer: NodeJS.Timeout }>();

  /** Runs a command in a waiting shell. Null if there is none. Both outputs must be read or cancelled. */
  async run(containerId: string, command: ShellCommand): Promise<BegunExecution | null> {
    const waiting = this.#waiting.get(containerId)?.shell;
    if (waiting === undefined) return null;
    this.#remove(containerId, waiting);
    return waiting.run(command, checkMs.waiting);
  }

  /** Runs a command in a shell that the engine has just started. */
  async runInNew(containerId: string, command: ShellCommand, execution: OwnExecution): Promise<BegunExecution | RefusedCommand> {
    const shell = new Shell(execution, this.mark, () => this.#keep(containerId, shell));
    void execution.exited.then(() => this.#remove(containerId, shell));
    return (await shell.run(command, checkMs.new)) ?? { refusal: '' };
  }

  #keep(containerId: string, shell: Shell): void {
    if (this.#waiting.has(containerId) || this.#waiting.size >= maxWaiting) return shell.close();
    const end = (): void => {
      this.#remove(containerId, shell);
      shell.close();
    };
    this.#waiting.set(containerId, { shell, timer: setTimeout(end, waitMs).unref() });
  }

  #remove(containerId: string, shell: Shell): void {
    const waiting = this.#waiting.get(containerId);
    if (waiting?.shell !== shell) return;
    clearTimeout(waiting.timer);
    this.#waiting.delete(containerId);
  }
}

class Shell {
  readonly #execution: OwnExecution;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #stdout: MarkedOutput;
  readonly #stderr: MarkedOutput;
  readonly #onWait: () => void;
  /** Resolves the exit code of the present command. */
  #exit: (code: number | null) => void = () => {};

  constructor(execution: OwnExecution, mark: string, onWait: () => void) {
    this.#execution = execution;
    this.#input = execution.stdin.getWriter();
    this.#input.closed.catch(() => {});
    this.#stdout = splitAtMarks(execution.stdout, mark);
    this.#stderr = splitAtMarks(execution.stderr, mark);
    this.#onWait = onWait;
    void execution.exited.then((code) => this.#exit(code));
  }

  /** Returns null if the shell does not begin the command, now or later. In a frozen sandbox, waits until it runs again. */
  async run({ line, mark, leavesNoProcesses }: ShellCommand, everyMs: number): Promise<BegunExecution | null> {
    const shell = this.#execution;
    shell.beginAnother(mark);
    const exit = Promise.withResolvers<number | null>();
    this.#exit = exit.resolve;
    await this.#input.write(Buffer.from(line)).catch(() => {});
    const begins = this.#begins();
    const isDecided = (): Promise<boolean> => raceSignal(begins, AbortSignal.timeout(everyMs)).then(() => true, () => false);
    // After a freeze, the shell gets some time: a kill while it begins would end the command.
    let wasFrozen = true;
    while (!(await isDecided())) {
      const isFrozen = await shell.isFrozen();
      if (!wasFrozen && !isFrozen) await shell.endUnlessFrozen();
      wasFrozen = isFrozen;
    }
    if (!(await begins)) return null;
    let isReusable = leavesNoProcesses;
    let openOutputs = 2;
    const next = async (output: MarkedOutput): Promise<Uint8Array | null> => {
      for (;;) {
        const { value: found = null } = await output.next();
        if (found === null || found instanceof Uint8Array) return found;
        // A durable command's exit code comes before the `end` of its supervisor.
        if (output === this.#stdout) exit.resolve(found.code);
        if (found.event !== 'end') continue;
        // What a signal has killed may have left processes that still write.
        if (!isReusable || found.code > maxCertainCode) {
          this.close();
          continue;
        }
        openOutputs -= 1;
        if (openOutputs === 0) this.#wait();
        return null;
      }
    };
    return {
      stdin: new WritableStream({ close: () => (isReusable ? undefined : this.close()) }),
      stdout: commandOutput(() => next(this.#stdout)),
      stderr: commandOutput(() => next(this.#stderr)),
      exited: exit.promise,
      kill: async () => {
        if (openOutputs === 0) return;
        // The command may end before its shell is killed.
        isReusable = false;
        await shell.kill();
      },
      leave: () => shell.leave(),
      outlive() {
        isReusable = true;
        shell.outlive();
      },
    };
  }

  /** Ends the shell after its present command. */
  close(): void {
    void this.#input.close().catch(() => {});
  }

  #wait(): void {
    // The shell ends with its connection, so a close need not kill it.
    this.#execution.outlive();
    this.#onWait();
  }

  /** Waits for the begin of the command. Drops what an earlier one left behind. */
  async #begins(): Promise<boolean> {
    for (;;) {
      const { value: found } = await this.#stdout.next();
      if (found === undefined) return false;
      if (!(found instanceof Uint8Array) && found.event === 'begin') return true;
    }
  }
}

/** If the stream is cancelled, the rest is read and dropped. The cancel does not wait for that, since the rest may be endless. */
function commandOutput(next: () => Promise<Uint8Array | null>): ReadableStream<Uint8Array> {
  let reading: Promise<Uint8Array | null> | undefined;
  const drop = async (): Promise<void> => {
    while ((await reading) !== null) reading = next();
  };
  return new ReadableStream(
    {
      async pull(controller) {
        const chunk = await (reading = next());
        if (chunk === null) controller.close();
        else controller.enqueue(chunk);
      },
      cancel: () => void drop(),
    },
    { highWaterMark: 0 },
  );
}
