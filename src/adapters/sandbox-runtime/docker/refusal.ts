/** What the sandbox itself can't do, or its engine can't do for it; it becomes the detail of a fact. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly detail: string;

  constructor(detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.detail = detail;
  }
}
