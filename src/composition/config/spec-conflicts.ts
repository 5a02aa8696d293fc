import type { Mistake } from './mistakes.ts';

type Keys = Readonly<Record<string, unknown>>;

/**
 * What is wrong between the fields of specs that may each be fine. The specs are looked at as they are written, since one
 * mistake must not hide another: what is not of its form is passed over here.
 */
export function conflictsIn(specs: unknown, { imagesNeeded }: { readonly imagesNeeded: boolean }): readonly Mistake[] {
  const written = listOf(specs).map(mappingOf);
  const twice = repeated(written.map(({ id }) => id));
  return [
    ...[...twice].map(([index, first]) => ({ path: ['specs', index, 'id'], problem: `is ${JSON.stringify(written[index]?.['id'])}, which spec no. ${first + 1} has already` })),
    ...written.flatMap((spec, index) => [...portConflicts(spec), ...readyConflicts(spec), ...(imagesNeeded ? missingImage(spec) : [])].map(({ path, problem }) => ({ path: ['specs', index, ...path], problem }))),
  ];
}

function portConflicts(spec: Keys): Mistake[] {
  const ports = listOf(spec['ports']).map(mappingOf);
  const again = (field: string): Mistake[] =>
    [...repeated(ports.map((port) => port[field]))].map(([index, first]) => ({
      path: ['ports', index, field],
      problem: `is ${JSON.stringify(ports[index]?.[field])}, which ports[${first}] has already`,
    }));
  const unreachable = ports.length > 0 && mappingOf(spec['isolation'])['network'] === 'none';
  return [...again('name'), ...again('port'), ...(unreachable ? [{ path: ['ports'], problem: 'can not be reached while isolation.network is none; take one of the two out' }] : [])];
}

function readyConflicts(spec: Keys): Mistake[] {
  const { http, tcp, port } = mappingOf(spec['ready']);
  const there = listOf(spec['ports']).map((entry) => mappingOf(entry)['port']);
  if (http !== undefined && tcp !== undefined) return [{ path: ['ready'], problem: 'has both http and tcp; keep one of them' }];
  if (http === undefined && tcp === undefined) return port === undefined ? [] : [{ path: ['ready', 'port'], problem: 'has no effect without http or tcp beside it' }];
  if (port === undefined) return [{ path: ['ready', 'port'], problem: `is missing, while ${http === undefined ? 'tcp' : 'http'} needs it` }];
  if (typeof port !== 'number' || there.includes(port)) return [];
  return [{ path: ['ready', 'port'], problem: `is ${port}, which is none of the ports of the spec${there.length === 0 ? ' (it has none)' : ''}` }];
}

function missingImage({ image }: Keys): Mistake[] {
  return image === undefined ? [{ path: ['image'], problem: 'is missing, and Docker needs it' }] : [];
}

/** The places whose value stands at an earlier one already, with that one. */
function repeated(values: readonly unknown[]): ReadonlyMap<number, number> {
  return new Map(values.flatMap((value, index) => {
    const first = values.indexOf(value);
    return first < index && (typeof value === 'string' || typeof value === 'number') ? [[index, first] as const] : [];
  }));
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mappingOf(value: unknown): Keys {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}
