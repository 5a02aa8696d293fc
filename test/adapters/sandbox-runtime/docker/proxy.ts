import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

/** A way to the real engine that a test can cut. */
export interface Proxy {
  readonly port: number;
  /** How many connections have been made. */
  readonly connections: () => number;
  /** Ends every connection at once; new ones are ended too until it is mended. */
  cut(): void;
  mend(): void;
  close(): Promise<void>;
}

const engineSocket = '/var/run/docker.sock';

/** Requests that the proxy holds back for a time. */
interface Delay {
  readonly requests: RegExp;
  readonly ms: number;
}

export async function startProxy(tls?: TlsOptions, delay?: Delay): Promise<Proxy> {
  const open = new Set<Socket>();
  let whole = true;
  let connections = 0;
  const accept = (socket: Socket): void => {
    connections += 1;
    const engine = connect(engineSocket);
    for (const [one, other] of [
      [socket, engine],
      [engine, socket],
    ] as const) {
      open.add(one);
      one.on('error', () => one.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
    if (!whole) return void socket.destroy();
    const delaying = new Transform({
      transform: (chunk: Buffer, _, done) =>
        void (delay?.requests.test(String(chunk)) === true ? setTimeout(done, delay.ms, null, chunk) : done(null, chunk)),
    });
    socket.pipe(delaying).pipe(engine).pipe(socket);
  };
  const server: Server = tls === undefined ? createServer({ allowHalfOpen: true }, accept) : createTlsServer(tls, accept);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cutAll = (): void => {
    for (const socket of open) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    cut() {
      whole = false;
      cutAll();
    },
    mend: () => void (whole = true),
    async close() {
      cutAll();
      server.close();
      await once(server, 'close');
    },
  };
}
