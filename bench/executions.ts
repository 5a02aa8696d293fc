import { finished } from 'node:stream/promises';
import { Agent, request } from 'node:http';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import Docker from 'dockerode';
import { z } from 'zod';
import { boundedFigure, type Figure, inMs, median, timed } from './figure.ts';
import { type Listening, startServerProcess } from './server-process.ts';

const images = ['skep-test/debian', 'skep-test/tiny'] as const;
const echoes = 60;
const echo = ['echo', 'hello'];
const bytes = 2 ** 30;
const flood = ['dd', 'if=/dev/zero', 'bs=65536', `count=${bytes / 65_536}`];
const Execution = z.object({ id: z.string(), status: z.string(), exit_code: z.number().nullish() });

/** Measures a command over the HTTP API until its exit code, and following a long output, against an exec of the Engine API. */
export async function* benchExecutions(): AsyncGenerator<Figure> {
  for (const image of images) {
    await using server = await startServerProcess('executions-server.ts', image);
    const docker = new Docker();
    const container = await docker.createContainer({ Image: image, Cmd: ['sleep', '100000'], HostConfig: { Init: true } });
    await container.start();
    const agent = new Agent({ keepAlive: true });
    try {
      const raw = (command: string[]) => runRaw(container, command);
      const skep = (command: string[]) => runOverHttp(server.listening, agent, command);
      yield await benchEcho(image, raw, skep);
      yield await benchFlood(image, raw, skep);
    } finally {
      agent.destroy();
      await container.remove({ force: true });
    }
  }
}

/** Runs a command in the sandbox. Returns the number of bytes of its output. */
type Run = (command: string[]) => Promise<number>;

async function benchEcho(image: string, raw: Run, skep: Run): Promise<Figure> {
  const times = { raw: [] as number[], skep: [] as number[] };
  for (let round = -5; round < echoes; round += 1) {
    const [rawMs, skepMs] = [await timed(() => raw(echo)), await timed(() => skep(echo))];
    if (round < 0) continue;
    times.raw.push(rawMs);
    times.skep.push(skepMs);
  }
  const [rawMs, skepMs] = [median(times.raw), median(times.skep)];
  const texts = { name: `echo to its exit code, ${image}`, measured: inMs(skepMs), reference: `${inMs(rawMs)}: an exec of the engine` };
  return boundedFigure(texts, skepMs / rawMs, { atMost: 1.15 });
}

async function benchFlood(image: string, raw: Run, skep: Run): Promise<Figure> {
  const perSecond = async (run: Run): Promise<number> => {
    let came = 0;
    const ms = await timed(async () => {
      came = await run(flood);
    });
    if (came < bytes) throw new Error(`only ${came} bytes came`);
    return bytes / 2 ** 20 / (ms / 1000);
  };
  const [rawRate, skepRate] = [await perSecond(raw), await perSecond(skep)];
  const texts = {
    name: `1 GiB of output, followed, ${image}`,
    measured: `${skepRate.toFixed(0)} MiB/s`,
    reference: `${rawRate.toFixed(0)} MiB/s: an exec of the engine`,
  };
  return boundedFigure(texts, skepRate / rawRate, { atLeast: 0.7 });
}

async function runRaw(container: Docker.Container, command: string[]): Promise<number> {
  const exec = await container.exec({ Cmd: command, AttachStdout: true, AttachStderr: true });
  const count = await countBytes(await exec.start({ hijack: true }));
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`the command exited with ${ExitCode}`);
  return count;
}

async function runOverHttp({ url, key }: Listening, agent: Agent, command: string[]): Promise<number> {
  const ask = async (method: string, path: string, body?: object): Promise<Readable> => {
    const headers = { 'X-Session-API-Key': key, ...(body !== undefined && { 'Content-Type': 'application/json' }) };
    const asked = request(`${url}${path}`, { agent, method, headers });
    const answered = new Promise<Readable>((resolve, reject) => {
      asked.once('response', (response) => {
        if ((response.statusCode ?? 500) < 300) resolve(response);
        else reject(new Error(`${method} ${path} answered ${response.statusCode}`));
      });
      asked.once('error', reject);
    });
    asked.end(body === undefined ? undefined : JSON.stringify(body));
    return answered;
  };
  const { id } = await read(await ask('POST', '', { command }));
  const count = await countBytes(await ask('GET', `/${id}/output?follow=true&hold=true`));
  const { status, exit_code: code } = await read(await ask('GET', `/${id}`));
  if (status !== 'exited' || code !== 0) throw new Error(`the command is ${status}, with ${code}`);
  return count;
}

async function read(answer: Readable): Promise<z.infer<typeof Execution>> {
  return Execution.parse(JSON.parse((await buffer(answer)).toString()));
}

async function countBytes(stream: NodeJS.ReadableStream): Promise<number> {
  let count = 0;
  stream.on('data', (chunk: Buffer) => {
    count += chunk.length;
  });
  await finished(stream, { writable: false }).catch(() => {});
  return count;
}
