import { createHash, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';

export interface Blob {
  readonly digest: string;
  readonly bytes: Buffer;
}

/** A new, unique image with one layer and one file. */
export interface TinyImage {
  readonly manifest: Blob;
  readonly config: Blob;
  readonly layer: Blob;
}

export const manifestType = 'application/vnd.docker.distribution.manifest.v2+json';

export async function createTinyImage(): Promise<TinyImage> {
  const archive = pack();
  // Random bytes, because they do not compress.
  archive.entry({ name: 'content' }, randomBytes(1 << 20));
  archive.finalize();
  const tar = await buffer(archive);
  const layer = blob(gzipSync(tar));
  const config = blob(json({ architecture: 'amd64', os: 'linux', config: { Cmd: ['/content'] }, rootfs: { type: 'layers', diff_ids: [digestOf(tar)] } }));
  const manifest = blob(
    json({
      schemaVersion: 2,
      mediaType: manifestType,
      config: { mediaType: 'application/vnd.docker.container.image.v1+json', size: config.bytes.length, digest: config.digest },
      layers: [{ mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip', size: layer.bytes.length, digest: layer.digest }],
    }),
  );
  return { manifest, config, layer };
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function blob(bytes: Buffer): Blob {
  return { digest: digestOf(bytes), bytes };
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
