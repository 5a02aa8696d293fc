export type { AcpOptions } from './options.ts';
export { createAcpProtocol } from './protocol.ts';
