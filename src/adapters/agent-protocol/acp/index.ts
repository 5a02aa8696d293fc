export { createAcpProtocol } from './protocol.ts';
