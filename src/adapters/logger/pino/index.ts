export { createPinoLogger } from './logger.ts';
