import { Failure } from '../../domain/failure.ts';
import { answering, refusing, type Handler } from './answering.ts';
import type { Deployment } from './deployment.ts';
import type { Incoming, Outgoing } from './exchange.ts';
import type { Operation } from './operation.ts';
import { originForm, pathPattern, pathOf } from './request/path.ts';

/** What happens at one path. */
interface Place {
  readonly byMethod: ReadonlyMap<string, Handler>;
  readonly otherwise: Handler;
}

/**
 * Finds the operation of a request by its path as it was sent. Express would decode the path, answer mistakes in it in
 * its own way, and take some for other routes; so it only mounts this, and the server of its own goes without.
 */
export class Dispatcher {
  readonly #fixed = new Map<string, Place>();
  readonly #patterns: { readonly pattern: RegExp; readonly place: Place }[] = [];
  readonly #nowhere: Handler;

  constructor(deployment: Deployment, operations: readonly Operation[]) {
    for (const [path, atPath] of Map.groupBy(operations, ({ path }) => path)) {
      const place = placeOf(deployment, atPath);
      if (path.includes('{')) this.#patterns.push({ pattern: pathPattern(path), place });
      else this.#fixed.set(path, place);
    }
    this.#nowhere = refusing(deployment, new Failure('not_found', {}), true);
  }

  /** Answers the request, whatever it asks for. `mount` is where this is mounted: empty at the root. */
  readonly dispatch = (request: Incoming, response: Outgoing, mount: string): void => {
    const target = originForm(request.url ?? '/');
    const place = this.#placeAt(pathOf(target));
    const handler = place === undefined ? this.#nowhere : (place.byMethod.get(request.method ?? '') ?? place.otherwise);
    handler(request, response, mount);
  };

  /** A path that is written out goes before one with a placeholder. */
  #placeAt(path: string): Place | undefined {
    return this.#fixed.get(path) ?? this.#patterns.find(({ pattern }) => pattern.test(path))?.place;
  }
}

function placeOf(deployment: Deployment, operations: readonly Operation[]): Place {
  const byMethod = new Map<string, Handler>();
  for (const operation of operations) {
    const handler = answering(deployment, operation);
    byMethod.set(operation.method.toUpperCase(), handler);
    // Node leaves the body of such an answer out.
    if (operation.method === 'get') byMethod.set('HEAD', handler);
  }
  const refusal = new Failure('method_not_allowed', { allow: [...byMethod.keys()] });
  return { byMethod, otherwise: refusing(deployment, refusal, operations.some(({ needsKey }) => needsKey)) };
}
