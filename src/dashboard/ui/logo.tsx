/** A skep is a beehive made of straw. */
export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 16 16" aria-hidden="true">
      <path d="M8 1.5c3 0 4.2 1.8 4.2 3.4 1.3.6 1.9 1.7 1.9 2.8 0 .9-.3 1.5-.8 2 .8.6 1.2 1.4 1.2 2.4 0 1.5-1 2.4-2.5 2.4h-8c-1.5 0-2.5-.9-2.5-2.4 0-1 .4-1.8 1.2-2.4-.5-.5-.8-1.1-.8-2 0-1.1.6-2.2 1.9-2.8C3.8 3.3 5 1.5 8 1.5Z" />
      <circle cx="8" cy="11.6" r="1.7" />
    </svg>
  );
}
