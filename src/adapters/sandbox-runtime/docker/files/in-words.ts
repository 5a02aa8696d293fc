import { Failure, isFailure } from '../../../../domain/failure.ts';
import { refusedFiles } from '../../sandbox-path.ts';
import { messageOf, statusOf } from '../engine-errors.ts';

/** What the engine says of an archive that it does not unpack, in the words of the port. */
export function inWords(error: unknown): unknown {
  const status = statusOf(error);
  if (isFailure(error) || status === null || status === 404) return error;
  const said = messageOf(error);
  if (/cannot overwrite/i.test(said)) {
    return refusedFiles('archive', 'one of its directories is there already as something else, or the other way round; remove that first');
  }
  if (/no space left|quota exceeded/i.test(said)) {
    return new Failure('runtime_unavailable', { runtime: 'docker', reason: 'the disk of its engine is full', retryAfterSeconds: 5 }, { cause: error });
  }
  if (/name too long|no such file|not a directory|invalid/i.test(said)) {
    return refusedFiles('archive', 'one of its names is too long, leads through a file, or links to a file that is not there');
  }
  return error;
}
