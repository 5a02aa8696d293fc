export { createPinoLogger } from './pino-logger.ts';
