import type { Ref } from './heads.ts';
import { readPackets } from './pkt-line.ts';

/** What a host says first: its refs (protocol 0 and 1), or what it can be asked (2). */
export type Advertisement =
  | { readonly version: 2; readonly objectFormat: string | null }
  | { readonly version: 1; readonly refs: readonly Ref[] };

/** Null where it is not of the documented form. */
export function readAdvertisement(bytes: Buffer): Advertisement | null {
  const lines = readPackets(bytes)?.filter((line) => line !== null && !line.startsWith('# service=')) ?? null;
  if (lines === null) return null;
  const [first] = lines;
  if (first !== 'version 2') return readRefs(lines.filter((line) => line !== null && line !== 'version 1'));
  const format = lines.find((line) => line?.startsWith('object-format=') === true);
  return { version: 2, objectFormat: format?.slice('object-format='.length) ?? null };
}

function readRefs(lines: readonly (string | null)[]): Advertisement {
  const [first = '', capabilities = ''] = (lines[0] ?? '').split('\0');
  const target = /(?:^| )symref=HEAD:(\S+)/u.exec(capabilities)?.[1] ?? null;
  const refs = [first, ...lines.slice(1)].flatMap((line) => {
    const [oid = '', name] = (line ?? '').split(' ');
    return name === undefined ? [] : [{ name, oid, target: name === 'HEAD' ? target : null }];
  });
  return { version: 1, refs };
}

/** Reads the answer of protocol 2 to a question for refs; null where it is not of the documented form. */
export function readListedRefs(bytes: Buffer): Ref[] | null {
  const lines = readPackets(bytes);
  return lines?.flatMap((line) => {
    const [oid = '', name, ...attributes] = (line ?? '').split(' ');
    if (name === undefined) return [];
    const target = attributes.find((attribute) => attribute.startsWith('symref-target:'));
    return [{ name, oid, target: target?.slice('symref-target:'.length) ?? null }];
  }) ?? null;
}
