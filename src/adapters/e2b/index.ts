export { e2b } from './e2b-router.ts';
