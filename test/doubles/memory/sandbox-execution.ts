import { refusedExecution, whyUnrunnable } from '../../../src/adapters/sandbox-runtime/execution-streams.ts';
import type { Execution, ExecutionRequest, SandboxLaunch } from '../../../src/ports/sandbox-runtime.ts';
import type { MemoryFiles } from './sandbox-files.ts';

/** The environment of a command that is executed in a sandbox in memory. */
export interface MemoryExecution {
  readonly launch: SandboxLaunch;
  readonly request: ExecutionRequest;
  /** The sandbox's variables and those of the request. */
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  readonly files: MemoryFiles;
  readonly stdin: ReadableStream<Uint8Array>;
  /** Resolves when the text is read, so a command blocks as a real one does. */
  readonly stdout: WritableStream<Uint8Array>;
  readonly stderr: WritableStream<Uint8Array>;
  /** Resolves when the sandbox is not frozen. Rejects when the command is ended. Call it before each step. */
  readonly step: () => Promise<void>;
  /** Fires when the command is ended. Nothing that it does afterwards has an effect. */
  readonly signal: AbortSignal;
}

/** Runs every executed command. Returns its exit code. For an unknown command, writes to `stderr` and returns 127. */
export type MemoryCommand = (execution: MemoryExecution) => number | Promise<number>;

/** No command exists. */
export const noCommand: MemoryCommand = async ({ request, stderr }) => {
  const writer = stderr.getWriter();
  await writer.write(new TextEncoder().encode(`command not found: ${request.command[0]}\n`));
  return 127;
};

export interface MemorySurroundings {
  readonly launch: SandboxLaunch;
  readonly files: MemoryFiles;
  readonly command: MemoryCommand;
  /** Resolves when the sandbox is not frozen. */
  readonly unfrozen: () => Promise<void>;
}

/** An execution, and how its sandbox ends it. */
export interface OwnExecution extends Execution {
  end(exitCode: number | null): void;
}

const killed = 128 + 9;

/** Runs the command. */
export function runInMemory({ launch, files, command, unfrozen }: MemorySurroundings, request: ExecutionRequest): OwnExecution {
  const { spec, sessionApiKey } = launch;
  const workingDir = request.workingDir ?? spec.workingDir;
  const unrunnable = whyUnrunnable(request) ?? (files.isDirectory(workingDir) ? null : `the working directory ${workingDir} does not exist`);
  if (unrunnable !== null) return { ...refusedExecution(126, unrunnable), end: () => {} };

  const pipes = { stdin: createPipe(), stdout: createPipe(), stderr: createPipe() };
  const exited = Promise.withResolvers<number | null>();
  const ended = new AbortController();
  const end = (exitCode: number | null): void => {
    exited.resolve(exitCode);
    ended.abort(new Error('the command was ended'));
    for (const pipe of Object.values(pipes)) pipe.end();
  };
  const run = async (): Promise<number> =>
    command({
      launch,
      request,
      env: { ...spec.initialEnv, [spec.sessionKeyEnv]: sessionApiKey, ...request.env },
      workingDir,
      files,
      stdin: pipes.stdin.readable,
      stdout: pipes.stdout.writable,
      stderr: pipes.stderr.writable,
      async step() {
        await unfrozen();
        ended.signal.throwIfAborted();
      },
      signal: ended.signal,
    });
  void run().then(end, () => end(1));
  return {
    stdin: pipes.stdin.writable,
    stdout: drainedWhenCancelled(pipes.stdout.readable),
    stderr: drainedWhenCancelled(pipes.stderr.readable),
    exited: exited.promise,
    kill: async () => end(killed),
    end,
  };
}

interface Pipe extends TransformStream<Uint8Array, Uint8Array> {
  /** Accepts no more bytes. Earlier bytes can still be read. */
  readonly end: () => void;
}

function createPipe(): Pipe {
  const controllers: TransformStreamDefaultController<Uint8Array>[] = [];
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({ start: (controller) => void controllers.push(controller) });
  return {
    readable,
    writable,
    end() {
      for (const controller of controllers) controller.terminate();
    },
  };
}

function drainedWhenCancelled(source: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const drain = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => void drain(),
    },
    { highWaterMark: 0 },
  );
}
