export type { AcpOptions } from './protocol.ts';
export { createAcpProtocol } from './protocol.ts';
