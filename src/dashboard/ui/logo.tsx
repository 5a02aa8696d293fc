import skep from '../skep.svg';

/** A skep is a beehive made of straw. */
export function Logo() {
  return <img class="logo" src={skep} alt="" />;
}
