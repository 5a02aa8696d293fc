export { createPinoLogger, type PinoLoggerOptions } from './logger.ts';
