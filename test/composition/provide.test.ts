import 'reflect-metadata';
import { Container } from 'inversify';
import { expect, test } from 'vitest';
import { provide, provideValue, token } from '../../src/composition/wiring/tokens.ts';

const port = token<number>('port');
const host = token<string>('host');
const url = token<string>('url');

const bindOf = (container: Container) => container.bind.bind(container);

function bound(): Container {
  const container = new Container();
  const bind = bindOf(container);
  provideValue(bind, port, 80);
  provideValue(bind, host, 'localhost');
  return container;
}

test('a service is made from its dependencies, once', async () => {
  const container = bound();
  let made = 0;
  provide(bindOf(container), url, { host, port }, async ({ host, port }) => {
    made += 1;
    return `http://${host}:${port.toFixed(0)}`;
  });
  expect(await container.getAsync(url.id)).toBe('http://localhost:80');
  expect(await container.getAsync(url.id)).toBe('http://localhost:80');
  expect(made).toBe(1);
});

const factory = (deps: { readonly host: string; readonly port: number }): string => `${deps.host}:${deps.port}`;

test('a wrong dependency, a missing dependency and a wrong result do not compile, but the right ones do', async () => {
  const bind = bindOf(bound());
  // @ts-expect-error -- the port is missing
  provide(bind, url, { host }, factory);
  // @ts-expect-error -- a port is no host
  provide(bind, url, { host: port, port }, factory);
  // @ts-expect-error -- the factory makes a string
  provide(bind, port, { host, port }, factory);
  const container = bound();
  provide(bindOf(container), url, { host, port }, factory);
  expect(await container.getAsync(url.id)).toBe('localhost:80');
});
